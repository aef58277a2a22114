package controllermanager

import (
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gardenlite/gardenlite/internal/component"
)

// TestClock checks that New passes the configured clock on to component.New: controllers that component.NewControllerBuilder
// builds wait on it.
func TestClock(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Now())
	m, err := New(Config{REST: &rest.Config{Host: "https://127.0.0.1:1"}, Clock: clk, Controllers: func(string) bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	if component.ClockOf(m) != clk {
		t.Error("it has another clock")
	}
}
