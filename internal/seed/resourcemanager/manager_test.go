package resourcemanager

import (
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gardenlite/gardenlite/internal/component"
)

// TestClock checks that the manager has the given clock, on which component.NewControllerBuilder lets its controllers wait.
func TestClock(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Now())
	m, err := New(Config{REST: &rest.Config{Host: "https://127.0.0.1:1"}, Clock: clk})
	if err != nil {
		t.Fatal(err)
	}
	if component.ClockOf(m) != clk {
		t.Error("it has another clock")
	}
}
