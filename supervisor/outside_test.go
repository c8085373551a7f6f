package supervisor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/sink"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/services"
	"github.com/teamctl/teamctl/team"
)

// Requests that wait for the person are sent to sinks, messages between members are not, and a
// failing sink is reported.
func TestOutsideIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	out := filepath.Join(t.TempDir(), "out")
	if err := r.led.Set(t.Context(), services.SettingNotify, []string{"command:exit 3", "command:cat >> " + out}); err != nil {
		t.Fatal(err)
	}
	s := r.supervisor()
	m := r.spawn(s, "a", team.RestartNever)
	if _, _, err := r.led.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: "a", To: team.LeadName, Text: "a secret"}); err != nil {
		t.Fatal(err)
	}
	_, err := r.led.Ask(t.Context(), ledger.AskIn{RequestID: "perm-1", Kind: ledger.ApprovePermission, Session: m.SessionKey, Subject: "Bash"})
	if err != nil {
		t.Fatal(err)
	}
	var text string
	told := func(what string) {
		t.Helper()
		deadline := time.NewTimer(5 * time.Minute)
		defer deadline.Stop()
		look := time.NewTicker(20 * time.Millisecond)
		defer look.Stop()
		for !strings.Contains(text, what) {
			select {
			case <-look.C:
			case <-deadline.C:
				t.Fatalf("told %q", text)
			}
			data, _ := os.ReadFile(out)
			text = string(data)
		}
	}
	told("approval.asked")
	r.m.agent(r.layout, "a").end(backends.Exit{Known: true, Code: 3})
	told("member.failed")
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		var n sink.Notice
		if err := json.Unmarshal([]byte(line), &n); err != nil || n.Team != "t" || n.Title == "" {
			t.Errorf("%s: %v", line, err)
		}
	}
	if strings.Contains(text, "message.posted") || strings.Contains(text, "secret") {
		t.Errorf("told outside: %s", text)
	}
	failed, err := r.led.Events(t.Context(), 0, 0, ledger.EventFilter{What: "notify.failed"})
	if err != nil || len(failed) == 0 || !strings.Contains(string(failed[0].Data), "exit 3") {
		t.Errorf("%+v, %v", failed, err)
	}
}
