package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/html"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// The limits of the page.
const largeGraph, drawnVertices, listedVertices = 2000, 400, 2000

func debugServer(t *testing.T, g *graph.Graph) *served {
	t.Helper()
	return serve(t, func(c *Config) { c.Debug, c.Graph = true, g })
}

// largeExample returns a graph with more vertices than a page shows.
func largeExample() *graph.Graph {
	g := graph.New()
	seed := graph.Vertex{Kind: graph.KindSeed, Name: "local"}
	g.Set(seed, nil)
	for i := range largeGraph {
		shoot := graph.Vertex{Kind: graph.KindShoot, Namespace: fmt.Sprintf("garden-%d", i%10), Name: fmt.Sprintf("shoot-%04d", i)}
		g.Set(shoot, []graph.Edge{{From: shoot, To: seed}, {From: graph.Vertex{Kind: graph.KindCloudProfile, Name: "local"}, To: shoot}})
	}
	return g
}

type pageOf struct {
	listed, boxes []string
	lines         int
	links         map[string]string // text → address
	message       string
	text          string
}

func parsePage(t *testing.T, body string) pageOf {
	t.Helper()
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	p := pageOf{links: map[string]string{}}
	var text strings.Builder
	for node := range root.Descendants() {
		attributes := map[string]string{}
		for _, attribute := range node.Attr {
			attributes[attribute.Key] = attribute.Val
		}
		class := strings.Fields(attributes["class"])
		switch {
		case node.Type == html.TextNode:
			text.WriteString(node.Data)
		case node.Data == "li" && len(class) > 0 && class[0] == "vertex":
			p.listed = append(p.listed, attributes["id"])
		case node.Data == "a" && len(class) > 0 && class[0] == "box":
			p.boxes = append(p.boxes, attributes["data-label"])
		case node.Data == "path" && len(class) > 0 && class[0] == "line":
			p.lines++
		case node.Data == "p" && attributes["id"] == "message":
			p.message = node.FirstChild.Data
		case node.Data == "a" && node.FirstChild != nil:
			p.links[strings.TrimSpace(node.FirstChild.Data)] = attributes["href"]
		}
	}
	p.text = text.String()
	return p
}

func TestPageListsVertices(t *testing.T) {
	s := debugServer(t, exampleGraph())
	for _, test := range []struct {
		query          string
		listed         []string
		linked, drawn  []string
		message, count string
	}{
		{query: "?kind=Shoot&name=a", listed: []string{"Shoot/garden-dev/a"}, count: "1 vertex",
			linked: []string{"Secret garden-dev/a.ca-cluster", "CloudProfile local", "Seed local", "Namespace garden-dev"},
			drawn:  []string{"Shoot garden-dev/a", "Seed local", "Secret garden-dev/a.ca-cluster", "CloudProfile local", "Namespace garden-dev"}},
		{query: "?kind=seed", listed: []string{"Seed//local"}, linked: []string{"Shoot garden-dev/a", "Shoot garden-dev/b"}, count: "1 vertex"},
		{query: "?namespace=garden-dev&kind=Secret",
			listed: []string{"Secret/garden-dev/a.ca-cluster", "Secret/garden-dev/b.ca-cluster"}, count: "2 vertices",
			drawn: []string{"Seed local"}}, // the path is followed to its end
		{query: "?name=*cluster", listed: []string{"Secret/garden-dev/a.ca-cluster", "Secret/garden-dev/b.ca-cluster"}},
		{query: "?name=ca-clu", listed: []string{"Secret/garden-dev/a.ca-cluster", "Secret/garden-dev/b.ca-cluster"},
			message: `exactly the name "ca-clu"`},
		{query: "?name=nothing", count: "0 vertices"},
		{query: "", count: "9 vertices", listed: []string{
			"CloudProfile//local", "Namespace//garden-dev", "Namespace//seed-local", "Project//" + hostileName,
			"Secret/garden-dev/a.ca-cluster", "Secret/garden-dev/b.ca-cluster", "Seed//local", "Shoot/garden-dev/a", "Shoot/garden-dev/b"}},
	} {
		status, body := s.get(GraphPath + test.query)
		if status != http.StatusOK {
			t.Fatalf("%q: %d %s", test.query, status, body)
		}
		p := parsePage(t, body)
		if fmt.Sprint(p.listed) != fmt.Sprint(test.listed) {
			t.Errorf("%q lists %q, want %q", test.query, p.listed, test.listed)
		}
		for _, name := range test.linked {
			if p.links[name] == "" {
				t.Errorf("%q has no link to %s", test.query, name)
			}
		}
		for _, name := range test.drawn {
			if !strings.Contains(strings.Join(p.boxes, "\n")+"\n", name+"\n") {
				t.Errorf("%q does not draw %s, but %q", test.query, name, p.boxes)
			}
		}
		if !strings.Contains(p.message, test.message) || !strings.Contains(p.text, test.count) {
			t.Errorf("%q says %q, want %q and %q", test.query, p.message, test.message, test.count)
		}
	}
}

// TestLinksLead checks that links lead to the anchor of the vertex, on the same page or on another one.
func TestLinksLead(t *testing.T) {
	s := debugServer(t, exampleGraph())
	_, body := s.get(GraphPath + "?kind=Shoot&name=a")
	address := parsePage(t, body).links["Secret garden-dev/a.ca-cluster"]
	_, body = s.get(address)
	if p := parsePage(t, body); fmt.Sprint(p.listed) != "[Secret/garden-dev/a.ca-cluster]" || p.lines != 2 {
		t.Errorf("%s lists %q and draws %d lines", address, p.listed, p.lines)
	}
	if !strings.HasSuffix(address, "#Secret/garden-dev/a.ca-cluster") {
		t.Errorf("%s has no anchor", address)
	}
	_, body = s.get(GraphPath)
	if address := parsePage(t, body).links["Secret garden-dev/a.ca-cluster"]; address != "#Secret/garden-dev/a.ca-cluster" {
		t.Errorf("on one page the link is %s", address)
	}
}

func TestLargeGraphShowsSeedsFirst(t *testing.T) {
	s := debugServer(t, largeExample())
	_, body := s.get(GraphPath)
	p := parsePage(t, body)
	if fmt.Sprint(p.listed) != "[Seed//local]" || !strings.Contains(p.message, "seeds are shown first") {
		t.Errorf("lists %d vertices and says %q", len(p.listed), p.message)
	}
	if len(p.boxes) != drawnVertices || !strings.Contains(p.text, fmt.Sprintf("%d more vertices belong here", largeGraph+1-drawnVertices)) {
		t.Errorf("draws %d boxes", len(p.boxes))
	}
	if !strings.Contains(p.text, fmt.Sprintf("%d incoming", largeGraph)) {
		t.Error("does not count the incoming edges")
	}
	_, body = s.get(GraphPath + "?kind=")
	if p = parsePage(t, body); len(p.listed) != listedVertices || p.links["next"] == "" {
		t.Fatalf("all kinds: %d vertices, links %v", len(p.listed), p.links["next"])
	}
	_, body = s.get(p.links["next"])
	if p = parsePage(t, body); len(p.listed) != 2 || p.links["previous"] == "" || p.links["next"] != "" {
		t.Errorf("the last page has %d vertices", len(p.listed))
	}
}

func TestPageIsSafe(t *testing.T) {
	s := debugServer(t, exampleGraph())
	nonces := map[string]bool{}
	for range 2 {
		status, body, header := s.do(http.MethodGet, GraphPath+`?name="><script>alert(1)</script>`, "", "")
		policy := header.Get("Content-Security-Policy")
		nonce := regexp.MustCompile(`script-src 'nonce-([A-Z2-7]{20,})'`).FindStringSubmatch(policy)
		if status != http.StatusOK || nonce == nil || !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe") {
			t.Fatalf("%d, policy %q", status, policy)
		}
		nonces[nonce[1]] = true
		if n := strings.Count(body, "<script"); n != 1 || !strings.Contains(body, `<script nonce="`+nonce[1]+`">`) {
			t.Errorf("%d scripts", n)
		}
		for _, outside := range []string{"http://", "https://", " src=", "url(http", "@import", " style="} {
			if strings.Contains(body, outside) {
				t.Errorf("the page has %q", outside)
			}
		}
		if header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Cache-Control") != "no-store" ||
			header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("headers %v", header)
		}
	}
	if len(nonces) != 2 {
		t.Error("a nonce was used twice")
	}
	if _, body := s.get(GraphPath); strings.Contains(body, "<img") || strings.Count(body, "<script") != 1 {
		t.Error("a name is not escaped")
	}
	for _, query := range []string{"?kind=<b>", "?format=xml"} {
		if status, body, header := s.do(http.MethodGet, GraphPath+query, "", ""); status != http.StatusBadRequest ||
			!strings.HasPrefix(header.Get("Content-Type"), "text/plain") {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
}

func TestFormats(t *testing.T) {
	s := debugServer(t, exampleGraph())
	_, answer, header := s.do(http.MethodGet, GraphPath+"?format=json", "", "")
	var all graph.Snapshot
	if err := json.Unmarshal([]byte(answer), &all); err != nil || header.Get("Content-Type") != mediaTypeJSON {
		t.Fatalf("%v: %s", err, answer)
	}
	if want := exampleGraph().Snapshot(); fmt.Sprint(all) != fmt.Sprint(want) {
		t.Errorf("JSON has\n%v, want\n%v", all, want)
	}
	_, answer = s.get(GraphPath + "?format=json&kind=Shoot&name=b")
	var part graph.Snapshot
	if err := json.Unmarshal([]byte(answer), &part); err != nil {
		t.Fatal(err)
	}
	if len(part.Vertices) != 5 || len(part.Edges) != 4 {
		t.Errorf("a part has %v", part)
	}
	if status, answer := s.get(GraphPath + "?format=json&kind=Shoot&name=missing"); status != http.StatusNotFound {
		t.Errorf("a filter that selects nothing: %d %s", status, answer)
	}
	_, answer, header = s.do(http.MethodGet, GraphPath+"?format=dot", "", "")
	for _, want := range []string{
		"digraph", `"Secret garden-dev/a.ca-cluster" -> "Shoot garden-dev/a";`, `"Shoot garden-dev/a" -> "Seed local";`,
		`"Namespace garden-dev" [style=dashed];`, `"Seed local";`, `\"'></svg>`,
	} {
		if !strings.Contains(answer, want) {
			t.Errorf("DOT lacks %s:\n%s", want, answer)
		}
	}
	if header.Get("Content-Type") != "text/vnd.graphviz; charset=utf-8" {
		t.Errorf("content type %s", header.Get("Content-Type"))
	}
}

// unreadResponse is a response that the client does not read.
type unreadResponse struct {
	*httptest.ResponseRecorder
	written, read chan struct{}
}

func (r unreadResponse) Write(data []byte) (int, error) {
	close(r.written)
	<-r.read
	return len(data), nil
}

// TestSlowReaderDoesNotBlockOthers checks that the page is rendered for another client while one does not read its response.
func TestSlowReaderDoesNotBlockOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := Config{Graph: exampleGraph(), Synced: func() bool { return true }}
		s := &Server{config: config, rendering: make(chan struct{}, concurrentGraphRender)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		request := httptest.NewRequestWithContext(ctx, http.MethodGet, GraphPath, nil)
		slow := unreadResponse{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
		defer close(slow.read)
		go s.showGraph(slow, request)
		<-slow.written
		other := httptest.NewRecorder()
		s.showGraph(other, request)
		if !strings.Contains(other.Body.String(), "local") {
			t.Errorf("%d %q", other.Code, other.Body)
		}
	})
}
