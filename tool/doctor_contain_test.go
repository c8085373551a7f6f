package tool

import (
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/cgroup"
)

func TestDoctorContainment(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    cgroup.Support
		want []string
		not  string
	}{
		{cgroup.Support{Kill: true, Freeze: true, Memory: true, PIDs: true, CPU: true}, []string{"kill, pause", "limits for memory, pids, cpu"}, "("},
		{cgroup.Support{Kill: true, Freeze: true, Why: "no controller for memory"}, []string{"kill, pause", "resource limits only", "(no controller for memory)"}, "limits for"},
		{cgroup.Support{Freeze: true, PIDs: true, Why: "the kernel is older than 5.14"}, []string{"groups for pause; limits for pids", "older"}, "kill"},
		{cgroup.Support{Why: "no cgroup v2 hierarchy is mounted"}, []string{"process tree", "no pause: no cgroup v2"}, "control groups for"},
	} {
		got := containCheck(c.s)
		if got.Status != CheckOK {
			t.Errorf("%+v", got)
		}
		for _, w := range c.want {
			if !strings.Contains(got.Detail, w) {
				t.Errorf("%+v: %q lacks %q", c.s, got.Detail, w)
			}
		}
		if strings.Contains(got.Detail, c.not) {
			t.Errorf("%+v: %q has %q", c.s, got.Detail, c.not)
		}
	}
}
