package page

import (
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
)

func TestTimelineDocument(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	l := view.Timeline{Team: "demo", Run: 2, From: at, To: at.Add(time.Hour), History: at, Lanes: []view.Lane{{
		Member: "<img src=x>", Spans: []view.Span{{State: view.LaneWorking, From: at, To: at.Add(time.Minute)}},
		Tasks: []view.Stint{{Task: "1", Subject: "</svg><script>alert(1)</script>", Attempt: 2, From: at, To: at.Add(time.Minute), End: "failed"}},
	}}}
	var b strings.Builder
	if err := Timeline(&b, l); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	for _, want := range []string{"<title>Timeline of demo</title>", "&lt;img src=x&gt;", `<td class="n">1m00s`, "<td>failed", "<svg "} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, no := range []string{"<script", "<img"} {
		if strings.Contains(got, no) {
			t.Errorf("%q in\n%s", no, got)
		}
	}
}
