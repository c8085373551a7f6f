package teamfile

import (
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	f, err := Parse("f", []byte("team: x\nmembers:\n- name: a\n  limits: {memory: 2GiB, pids: 200, cpu: 150%}\n- name: b\n  limits: {memory: 536870912}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (team.Limits{MemoryBytes: 2 << 30, PIDs: 200, CPUPercent: 150}); f.Members[0].Limits != want {
		t.Errorf("%+v, want %+v", f.Members[0].Limits, want)
	}
	if want := (team.Limits{MemoryBytes: 512 << 20}); f.Members[1].Limits != want {
		t.Errorf("%+v, want %+v", f.Members[1].Limits, want)
	}
	for limits, want := range map[string]string{
		"{memory: lots}":     `f:4:20: invalid size "lots": for example 2GiB or 512MiB`,
		"{memory: 1MiB}":     "too small",
		"{pids: -1}":         "invalid number of processes",
		"{pids: 2}":          "cannot be kept",
		"{cpu: 150}":         "invalid share of a core",
		"{cpu: }":            "nothing",
		"{mem: 1GiB}":        "unknown key",
		"2GiB":               "limits",
		"{memory: [1, 2]}":   "memory",
		"{pids: 5, pids: 6}": "given twice",
	} {
		_, err := Parse("f", []byte("team: x\nmembers:\n- name: a\n  limits: "+limits+"\n"))
		if !team.IsCode(err, team.CodeInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", limits, err, want)
		}
	}
}
