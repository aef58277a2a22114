package webhook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// boxNamed returns an expression for the element of a vertex in the drawing.
func boxNamed(label string) string {
	return `[...document.querySelectorAll(".box")].find((box) => box.dataset.label === "` + label + `")`
}

// TestPageInBrowser uses the page like a person: zoom, pan, click, follow, find, hide, filter. The screenshot is stored
// in the folder of go test -artifacts.
func TestPageInBrowser(t *testing.T) {
	b := startBrowser(t)
	s := debugServer(t, exampleGraph())
	b.open(s.url + GraphPath)

	if title := b.text("document.title"); title != "Resource dependency graph" {
		t.Fatalf("title %q: a name in the graph ran as a script, or the page is not there", title)
	}
	if boxes := b.number(`document.querySelectorAll(".box").length`); boxes != 9 {
		t.Errorf("%v boxes", boxes)
	}
	if b.text(`document.getElementById("tools").hidden`) != "false" {
		t.Error("the tools are hidden: the script did not run")
	}
	t.Run("zoom and pan", func(t *testing.T) { zoomAndPan(t, b) })
	t.Run("choice", func(t *testing.T) { choose(t, b) })
	t.Run("filters", func(t *testing.T) { filter(t, b) })
	if len(b.complaints) > 0 {
		t.Errorf("the browser complains: %q", b.complaints)
	}
	t.Run("nothing else runs", func(t *testing.T) {
		b.eval(`(() => { const e = document.createElement("script"); e.textContent = "document.title = 'broken'"; document.body.append(e); })()`,
			nil)
		if title := b.text("document.title"); title != "Resource dependency graph" || len(b.complaints) == 0 {
			t.Errorf("a script without the nonce ran: %q, %q", title, b.complaints)
		}
	})
}

func zoomAndPan(t *testing.T, b *browser) {
	t.Helper()
	transform := func() string { return b.text(`document.getElementById("world").getAttribute("transform")`) }
	scale := func() float64 {
		return b.number(`document.getElementById("world").transform.baseVal.consolidate().matrix.a`)
	}
	offset := func() float64 {
		return b.number(`document.getElementById("world").transform.baseVal.consolidate().matrix.e`)
	}

	t.Run("the wheel zooms at the pointer", func(t *testing.T) {
		at := b.middleOf(boxNamed("Shoot garden-dev/a"))
		b.mouse("mouseWheel", at, map[string]any{"deltaX": 0, "deltaY": -400})
		b.eval(`new Promise(requestAnimationFrame)`, nil)
		if got := scale(); got < 1.5 {
			t.Errorf("scale %v: %s", got, transform())
		}
		if now := b.middleOf(boxNamed("Shoot garden-dev/a")); abs(now.X-at.X) > 3 || abs(now.Y-at.Y) > 3 {
			t.Errorf("what was under the pointer moved from %v to %v", at, now)
		}
	})
	t.Run("dragging pans, also from a box, and clicks nothing", func(t *testing.T) {
		before := offset()
		at := b.middleOf(boxNamed("Shoot garden-dev/a"))
		b.drag(at, point{at.X + 80, at.Y + 30})
		if now := b.middleOf(boxNamed("Shoot garden-dev/a")); abs(now.X-at.X-80) > 3 || abs(now.Y-at.Y-30) > 3 || offset() == before {
			t.Errorf("from %v by 80, 30 to %v", at, now)
		}
		if n := b.number(`document.querySelectorAll(".chosen").length`); n != 0 {
			t.Error("something is chosen")
		}
	})
	t.Run("the buttons zoom and fit", func(t *testing.T) {
		b.click(`document.getElementById("fit")`)
		if got := scale(); got != 1 {
			t.Errorf("scale %v", got)
		}
		b.click(`document.getElementById("zoom-in")`)
		b.click(`document.getElementById("zoom-in")`)
		b.click(`document.getElementById("zoom-out")`)
		if got := scale(); abs(got-1.4) > 0.01 {
			t.Errorf("scale %v", got)
		}
		b.click(`document.getElementById("fit")`)
	})
}

func choose(t *testing.T, b *browser) {
	t.Helper()
	t.Run("a click shows the way to the seed", func(t *testing.T) {
		b.click(boxNamed("Secret garden-dev/a.ca-cluster"))
		for label, class := range map[string]string{
			"Secret garden-dev/a.ca-cluster": "chosen", "Shoot garden-dev/a": "path", "Seed local": "path",
			"Shoot garden-dev/b": "dim", "CloudProfile local": "dim",
		} {
			if classes := b.text(boxNamed(label) + `.getAttribute("class")`); !strings.Contains(" "+classes+" ", " "+class+" ") {
				t.Errorf("%s has the classes %q, not %s", label, classes, class)
			}
		}
		if n := b.number(`document.querySelectorAll(".line.path").length`); n != 2 {
			t.Errorf("%v lines on the way", n)
		}
		if text := b.text(`document.getElementById("panel").textContent`); !strings.HasPrefix(text, "Secret garden-dev/a.ca-cluster") ||
			!strings.Contains(text, "1 outgoing") {
			t.Errorf("the panel says %q", text)
		}
		name := filepath.Join(t.ArtifactDir(), "graph.png")
		if err := os.WriteFile(name, b.screenshot(), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Logf("screenshot: %s", name)
	})
	t.Run("the panel leads on", func(t *testing.T) {
		b.click(`document.querySelector("#panel button.go")`)
		if chosen := b.text(`document.querySelector(".chosen").dataset.label`); chosen != "Shoot garden-dev/a" {
			t.Errorf("chosen: %s", chosen)
		}
		b.eval(`document.activeElement.blur()`, nil)
		b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": "Escape"}, nil)
		if b.text(`document.getElementById("panel").hidden`) != "true" {
			t.Error("Escape does not close it")
		}
	})
}

func filter(t *testing.T, b *browser) {
	t.Helper()
	t.Run("find and kinds", func(t *testing.T) {
		b.eval(`document.getElementById("find").focus()`, nil)
		b.call("Input.insertText", map[string]any{"text": "CA-CLUSTER"}, nil)
		if n := b.number(`document.querySelectorAll(".box:not(.dim)").length`); n != 2 {
			t.Errorf("%v found", n)
		}
		b.click(`document.querySelector("#kinds input[data-kind=Secret]")`)
		if n := b.number(`document.querySelectorAll(".box:not(.gone)").length`); n != 7 {
			t.Errorf("%v left without Secrets", n)
		}
	})
	t.Run("the form filters", func(t *testing.T) {
		before := b.loaded
		b.eval(`document.querySelector("select[name=kind]").value = "Shoot"; document.querySelector("input[name=name]").value = "a"`, nil)
		b.click(`document.querySelector("form button")`)
		b.waitForLoad(before)
		if listed := b.text(`[...document.querySelectorAll("li.vertex")].map((v) => v.id).join()`); listed != "Shoot/garden-dev/a" {
			t.Errorf("listed: %s", listed)
		}
		before = b.loaded
		b.click(`[...document.querySelectorAll("ul.outgoing a")].find((a) => a.textContent === "Seed local")`)
		b.waitForLoad(before)
		if chosen := b.text(`document.querySelector(".chosen").dataset.label`); chosen != "Seed local" {
			t.Errorf("the link to the seed chose %s", chosen)
		}
	})
}

func abs(x float64) float64 { return max(x, -x) }
