package web

import (
	"html"
	"regexp"
	"strings"
	"testing"
)

// TestAllTasks checks that the links of the list of tasks lead to all of them, that a filter finds those
// that the snapshot leaves out, and that it says when it has not looked through all of them yet.
func TestAllTasks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.f.mu.Lock()
	r.f.long = true
	r.f.mu.Unlock()
	next := regexp.MustCompile(`href="(/t/demo/tasks\?[^"]*)"`)
	walk := func(path string) (text string, pages int) {
		t.Helper()
		for pages = 1; pages < 10; pages++ {
			body := r.body(path)
			text += body
			m := next.FindStringSubmatch(body)
			if m == nil {
				return text, pages
			}
			path = html.UnescapeString(m[1])
		}
		t.Fatalf("it leads on after %s", path)
		return "", 0
	}
	text, pages := walk("/t/demo/tasks")
	if pages != 4 || strings.Count(text, `<b>5</b>`) != 1 {
		t.Errorf("%d pages", pages)
	}
	for _, want := range []string{"job 6.", "job 305.", "job 306.", "job 900.", "0 of 901 done"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	text, pages = walk("/t/demo/tasks?filter=job+777.")
	if pages != 3 || strings.Count(text, "job 777.</a>") != 1 || strings.Count(text, "None here so far.") != 1 || strings.Contains(text, "job 77.") {
		t.Errorf("%d pages of a filter:\n%s", pages, text)
	}
	text, _ = walk("/t/demo/tasks?filter=nothing")
	if !strings.Contains(text, "There is none any more.") || !strings.Contains(text, `value="nothing"`) {
		t.Errorf("a filter that finds nothing:\n%s", text)
	}
}
