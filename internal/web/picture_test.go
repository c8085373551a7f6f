package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"hash/crc32"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/internal/view/page"
	"github.com/teamctl/teamctl/internal/web/webtest"
	"github.com/teamctl/teamctl/team"
)

var update = flag.Bool("update", false, "draw the pictures anew")

// picture is a document in a window of some size.
type picture struct {
	doc  page.Doc
	size webtest.Kind
}

// shown are the documents of which docs/screens has pictures: a request on a phone, and the graph
// of the tasks at a desk.
func shown(t *testing.T) map[string]picture {
	t.Helper()
	now := time.Date(2026, 3, 2, 12, 23, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	task := func(id, subject, owner string, status team.TaskStatus, began, took time.Duration, waits ...string) view.Task {
		t := view.Task{ID: id, Subject: subject, Owner: owner, Status: status, Attempt: 1, Waits: waits}
		if began > 0 {
			t.Began = ago(began)
		}
		if took > 0 {
			t.Ended = t.Began.Add(took)
		}
		return t
	}
	s := view.Snapshot{
		Team: "shop", Repo: "/src/shop",
		Members: []view.Member{
			{Name: "builder", Agent: "claude", State: team.Running, Activity: team.Waiting, WaitsFor: "permission 1", ActiveSince: ago(5 * time.Minute)},
			{Name: "cart", Agent: "codex", State: team.Running, Activity: team.Working, ActiveSince: ago(3 * time.Minute)},
		},
		Tasks: []view.Task{
			task("1", "round the prices", "cart", team.TaskCompleted, 20*time.Minute, 4*time.Minute),
			task("2", "unit tests of the cart", "builder", team.TaskCompleted, 16*time.Minute, 6*time.Minute),
			task("3", "integration tests", "builder", team.TaskFailed, 9*time.Minute, 5*time.Second),
			task("4", "publish the package", "builder", team.TaskInProgress, 6*time.Minute, 0),
			task("5", "release notes", "cart", team.TaskInProgress, 3*time.Minute, 0),
			task("6", "deploy", "", team.TaskPending, 0, 0, "3", "4", "5"),
		},
		Needs: []view.Need{
			{Kind: view.NeedPermission, Member: "builder", Approval: 1, Text: "Bash: npm publish --tag next", Since: ago(5 * time.Minute)},
			{Kind: view.NeedTask, Member: "builder", Task: "3", Text: "integration tests: 2 of 40 failed", Since: ago(9 * time.Minute)},
		},
	}
	asked := view.Request{
		ID: 1, Kind: view.NeedPermission, State: "pending", Member: "builder", Agent: "claude", Mode: "default", Branch: "teamctl/shop/builder", Task: "4",
		Tool: "Bash", Description: "publish the release candidate", Command: "npm publish --tag next", Asked: ago(5 * time.Minute),
		Rule: "allow tool shell, command npm publish --tag next",
	}
	graph, err := view.NewGraph(s.Tasks, map[string][]string{"2": {"1"}, "3": {"2"}, "4": {"2"}, "5": {"1"}, "6": {"3", "4", "5"}}, now)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]picture{
		"page-request": {page.Doc{Kind: "approval", ID: "1", Team: "shop", Snapshot: s, Body: asked, Now: now}, webtest.Kind{Width: 390, Height: 490, Phone: true}},
		"page-graph":   {page.Doc{Kind: "graph", Team: "shop", Snapshot: s, Body: map[string]any{"SVG": graph.SVG(now), "Why": ""}, Now: now}, webtest.Kind{Width: 1060, Height: 400}},
	}
}

// TestPictures keeps the pictures of the page as the page is now. Another version of the browser
// draws other pixels of the same document, so a picture names the document that it shows.
func TestPictures(t *testing.T) {
	t.Parallel()
	var browser *webtest.Browser
	for name, p := range shown(t) {
		var b strings.Builder
		if err := page.Live(&b, p.doc); err != nil {
			t.Fatal(err)
		}
		doc := strings.Replace(b.String(), `<link rel="stylesheet" href="/app.css"><script src="/app.js" defer></script>`, "<style>"+string(page.Style())+"</style>", 1)
		if !strings.Contains(doc, "<style>") {
			t.Fatalf("%s has no style:\n%s", name, doc)
		}
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(doc)))
		path := filepath.Join("..", "..", "docs", "screens", name+".png")
		if *update {
			if browser == nil {
				browser = webtest.Start(t)
			}
			file := filepath.Join(t.TempDir(), name+".html")
			if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
				t.Fatal(err)
			}
			tab := browser.Tab(t, p.size)
			tab.Go("file://" + file)
			tab.Fits()
			if err := os.WriteFile(path, withSource(tab.Picture(), sum), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("%v: scripts/screens draws it", err)
			continue
		}
		if c, err := png.DecodeConfig(bytes.NewReader(data)); err != nil || c.Width != p.size.Width || c.Height != p.size.Height {
			t.Errorf("%s: %d by %d, %v", name, c.Width, c.Height, err)
		}
		if !bytes.Contains(data, []byte("tEXtSource\x00"+sum)) {
			t.Errorf("%s is stale: scripts/screens draws it", path)
		}
	}
}

// withSource returns a PNG that names its source in a chunk of text before its end.
func withSource(data []byte, source string) []byte {
	const end = 12 // the last chunk has no data
	chunk := append([]byte("tEXtSource\x00"), source...)
	out := bytes.Clone(data[:len(data)-end])
	out = binary.BigEndian.AppendUint32(out, uint32(len(chunk)-len("tEXt")))
	out = append(out, chunk...)
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(chunk))
	return append(out, data[len(data)-end:]...)
}
