package supervisor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/teamctl/teamctl/ledger"
)

// A config.json that cannot be read is moved aside, and the log says so once.
func TestConfigAsideIsAnEvent(t *testing.T) {
	r := newRig(t)
	publish := func() {
		t.Helper()
		if err := Publish(t.Context(), r.layout, r.led); err != nil {
			t.Fatal(err)
		}
	}
	events := func() []ledger.Event {
		t.Helper()
		all, err := r.led.Events(t.Context(), 0, 0, ledger.EventFilter{What: EventConfigAside})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	publish()
	if all := events(); len(all) != 0 {
		t.Fatalf("%+v", all)
	}
	const damaged = `{"name": "t", "mem`
	if err := os.WriteFile(r.layout.Config(), []byte(damaged), 0o600); err != nil {
		t.Fatal(err)
	}
	publish()
	publish()
	all := events()
	if len(all) != 1 {
		t.Fatalf("%d events: %+v", len(all), all)
	}
	if b, err := os.ReadFile(filepath.Join(r.layout.Dir, all[0].ID)); err != nil || string(b) != damaged {
		t.Errorf("%q, %v", b, err)
	}
}
