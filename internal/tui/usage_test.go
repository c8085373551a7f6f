package tui

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
)

// spender is a team that has used something.
type spender struct {
	fuzzed
	usage view.Usage
}

func (x *spender) Usage(context.Context) (view.Usage, error) { return x.usage, nil }

// TestUsageRows checks that the usage has a row for each task and day and for what no task is known for, and
// that what is unknown is not zero.
func TestUsageRows(t *testing.T) {
	t.Parallel()
	m := shownOf(crowd(3), 100, 30)
	m.at = inUsage
	m.usage = view.Usage{
		Team:    view.Spent{Known: true, Tokens: 900, Cost: 3, CostKnown: true},
		Agents:  []view.Spent{{Agent: "claude", Known: true, Tokens: 900, Cost: 3, CostKnown: true}, {Agent: "shell"}},
		Members: []view.Spent{{Name: "worker-1", Agent: "claude", Known: true, Tokens: 900, Cost: 3, CostKnown: true, Budget: "$4.00", Share: 0.75}},
		Limits:  []view.Limit{{Agent: "claude", Until: epoch}, {Agent: "codex"}},
		Tasks:   []view.Spent{{Name: "3", Subject: "build it", Known: true, Tokens: 500, Cost: 2, CostKnown: true}, {Name: "4", Known: true, Tokens: 50}},
		More:    7, Rest: view.Spent{Known: true, Tokens: 350},
		Days: []view.Spent{{Name: "2026-03-01", Known: true, Tokens: 550, Cost: 2, CostKnown: true}},
	}
	m.refresh()
	text := strings.Join(m.draw().lines, "\n")
	for _, want := range []string{"75 % of $4.00", "task 3 ", "build it", "and 7 more tasks", "without a task", "2026-03-01", "codex takes no more, until nobody knows when", "claude takes no more, until " + epoch.Local().Format("15:04")} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for name, want := range map[string]string{"worker-1": "100 % of all", "all claude": "100 % of all", "task 3": "56 % of all", "task 4": "6 % of all", "without a task": "39 % of all", "2026-03-01": "61 % of all", "all shell": ""} {
		found := false
		for line := range strings.Lines(text) {
			if strings.Contains(line, name+" ") {
				found = true
				if !strings.Contains(line, want) || want == "" && strings.Contains(line, "%") {
					t.Errorf("%s: no %q in %q", name, want, line)
				}
			}
		}
		if !found {
			t.Errorf("no row of %s in\n%s", name, text)
		}
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, "task 4") && (!strings.Contains(line, " 50 ") || !strings.Contains(line, " - ") && !strings.HasSuffix(strings.TrimSpace(line), "-")) {
			t.Errorf("an unknown cost: %s", line)
		}
	}

	var out strings.Builder
	talk := &talk{p: &Plain{Out: &out}, ctx: t.Context(), team: &spender{usage: m.usage}, snap: m.snap, have: true}
	talk.line("usage", time.Now())
	for _, want := range []string{"used by worker-1: 900 tokens, $3.00, 75 % of $4.00", "limit: codex takes no more", "used by all claude: 900 tokens, $3.00", "used by all shell: -", "used for task 3, build it: 500 tokens, 56 % of all, $2.00", "used without a task: 350 tokens, 39 % of all, -", "used on 2026-03-01: 550 tokens, 61 % of all, $2.00"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
