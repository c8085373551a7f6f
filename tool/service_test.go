package tool

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// A unit has the variables that the service manager's own environment lacks, with any characters,
// and nothing by which a member that cannot be recovered ends the supervisor.
func TestServiceUnits(t *testing.T) {
	l := team.Home{Dir: "/home/me/.teamctl"}.Team("demo")
	t.Setenv("HOME", "/home/me")
	t.Setenv("XDG_CONFIG_HOME", "/home/me/.config")
	t.Setenv(team.EnvRuntime, "/run/me/t")
	t.Setenv("PATH", `/home/me/50% "off"/bin:/a\b&c:/usr/bin`)

	unit, err := ServiceOf(l, "/usr/bin/teamctl", "linux")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(unit.Text, "\n")
	for _, want := range []string{
		"ExecStart=/usr/bin/teamctl supervise --team demo",
		"ExecStartPost=-/usr/bin/teamctl recover --team demo",
		"TimeoutStartSec=10min",
		"StartLimitIntervalSec=0",
		"KillMode=process",
		"Environment=TEAMCTL_HOME=/home/me/.teamctl",
		"Environment=TEAMCTL_RUNTIME_DIR=/run/me/t",
		"Environment=TEAMCTL_SUPERVISOR_IDLE=0",
		`Environment="PATH=/home/me/50%% \"off\"/bin:/a\\b&c:/usr/bin"`,
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in\n%s", want, unit.Text)
		}
	}
	if !strings.Contains(strings.Join(unit.Enable, "\n"), "loginctl enable-linger") {
		t.Errorf("nothing is said of lingering: %q", unit.Enable)
	}

	plist, err := ServiceOf(l, "/usr/bin/teamctl", "darwin")
	if err != nil {
		t.Fatal(err)
	}
	text := plainXML(t, plist.Text)
	for _, want := range []string{"PATH", `/home/me/50% "off"/bin:/a\b&c:/usr/bin`, "TEAMCTL_RUNTIME_DIR", "/run/me/t", "TEAMCTL_HOME", "supervise"} {
		if !slices.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
}

// plainXML is the text of each element that has any.
func plainXML(t *testing.T, doc string) (text []string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(doc))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return text
		}
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := tok.(xml.CharData); ok && strings.TrimSpace(string(c)) != "" {
			text = append(text, string(c))
		}
	}
}
