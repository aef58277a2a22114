package architecture

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestControllersWaitOnTheirClock: every controller is created with component.NewControllerBuilder, whose queue uses the clock
// of the component. The queue of a controller that is created with controller-runtime alone would use the machine's.
func TestControllersWaitOnTheirClock(t *testing.T) {
	own := filepath.Join("..", "component")
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || filepath.Dir(path) == own {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, maker := range []string{"builder.ControllerManagedBy(", "builder.TypedControllerManagedBy(",
			"controller.NewUnmanaged(", ").WithOptions(controller.Options", "\t\tWithOptions(controller.Options"} {
			if strings.Contains(string(text), maker) {
				t.Errorf("%s calls %s: make the controller with component.NewControllerBuilder", path, maker)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
