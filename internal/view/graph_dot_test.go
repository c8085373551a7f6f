package view

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// randomPlan has n tasks, each of which depends on up to two of the some that come before it.
func randomPlan(seed uint64, n int) ([]Task, map[string][]string) {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	tasks, deps := make([]Task, n), map[string][]string{}
	for i := range tasks {
		tasks[i] = Task{ID: strconv.Itoa(i), Subject: fmt.Sprintf("task \"%d\"; [x] <b>", i), Status: "pending"}
		for range r.IntN(3) {
			if i > 0 {
				deps[tasks[i].ID] = append(deps[tasks[i].ID], strconv.Itoa(max(0, i-1-r.IntN(max(4, n/5)))))
			}
		}
	}
	return tasks, deps
}

// TestCrossingsBesideDot: drawings have together at most half as many crossings again as those of
// Graphviz, and none has more than twice as many. Graphviz reads what is written for it.
func TestCrossingsBesideDot(t *testing.T) {
	t.Parallel()
	dot, err := exec.LookPath("dot")
	if err != nil {
		t.Skip("no dot to compare with")
	}
	sizes := []int{10, 30, 60}
	if !testing.Short() {
		sizes = append(sizes, 120, 250, 500)
	}
	count := regexp.MustCompile(`mincross \S*: (\d+) crossings`)
	ours, theirs := 0, 0
	for _, n := range sizes {
		for seed := range uint64(3) {
			tasks, deps := randomPlan(seed, n)
			g := newGraph(t, tasks, deps)
			cmd := exec.Command(dot, "-v", "-Tplain")
			cmd.Stdin = strings.NewReader(g.DOT(graphNow))
			var said, out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &said
			if err := cmd.Run(); err != nil {
				t.Fatalf("%d tasks: %v: %s", n, err, said.String())
			}
			if got := strings.Count(out.String(), "\nnode "); got != n {
				t.Errorf("dot reads %d of %d tasks", got, n)
			}
			m := count.FindAllStringSubmatch(said.String(), -1)
			if len(m) == 0 {
				t.Fatalf("dot does not say how many edges cross: %s", said.String())
			}
			its, err := strconv.Atoi(m[len(m)-1][1])
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d tasks: %d crossings, dot %d", n, g.Crossings, its)
			ours, theirs = ours+g.Crossings, theirs+its
			if g.Crossings > 2*its+5 {
				t.Errorf("%d tasks: %d crossings, dot %d", n, g.Crossings, its)
			}
		}
	}
	if 2*ours > 3*theirs {
		t.Errorf("%d crossings in all, dot %d", ours, theirs)
	}
}
