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

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/internal/view/page"
	"github.com/teamctl/teamctl/internal/view/viewtest"
	"github.com/teamctl/teamctl/internal/web/webtest"
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
	day := viewtest.Read(t, filepath.Join("..", ".."))
	graph, err := view.NewGraph(day.Before.Tasks, day.Depends, day.Now)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]picture{
		"page-request": {page.Doc{Kind: "approval", ID: "1", Team: day.Before.Team, Snapshot: day.Before, Body: day.Requests[0], Now: day.Now}, webtest.Kind{Width: 390, Height: 490, Phone: true}},
		"page-graph":   {page.Doc{Kind: "graph", Team: day.Before.Team, Snapshot: day.Before, Body: map[string]any{"SVG": graph.SVG(day.Now), "Why": ""}, Now: day.Now}, webtest.Kind{Width: 1120, Height: 400}},
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
