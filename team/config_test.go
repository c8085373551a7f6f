package team

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// recorded is a real team's directory; it is not part of the repository.
func recorded(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "shared", "fixtures", "recorded-team", name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no recorded team here")
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs:\n%s", path, got)
	}
}

func marshal(t *testing.T, c *Config) []byte {
	t.Helper()
	data, err := c.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func parse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := ParseConfig([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConfigGolden(t *testing.T) {
	t.Parallel()
	no, yes := false, true
	c := &Config{
		Name: "my-team", Description: "fix <all> & \"sundry\" \u2028 bugs", CreatedAt: 1770649635547,
		LeadAgentID: "team-lead@my-team", LeadSessionID: "3b22f6a2-8179-4ae8-b430-861f97e74884",
		Members: []ConfigMember{{
			AgentID: "team-lead@my-team", Name: "team-lead", AgentType: "team-lead", Model: "m",
			JoinedAt: 1770649635547, Cwd: "/src",
		}, {
			AgentID: "worker@my-team", Name: "worker", AgentType: "general-purpose", Model: "m",
			Prompt: "do\tit\nnow\x01", Color: "blue", PlanModeRequired: &no, JoinedAt: 1770649672906,
			TmuxPaneID: "%3", Cwd: "/src", Subscriptions: []string{"a"}, BackendType: "tmux",
			WorktreePath: "/wt", Mode: "plan", IsActive: &yes,
		}},
		HiddenPaneIDs: []string{"%3"},
	}
	golden(t, "config.json", marshal(t, c))
	golden(t, "config-empty.json", marshal(t, &Config{Name: "x"}))
}

func TestRecordedConfigsGoRound(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"config-live.json", "config-final.json"} {
		t.Run(name, func(t *testing.T) {
			data := recorded(t, name)
			c := parse(t, string(data))
			if got := marshal(t, c); !bytes.Equal(got, data) {
				t.Errorf("changed:\n%s", got)
			}
			lead := c.Member("team-lead")
			if lead == nil || lead.PlanModeRequired != nil || lead.BackendType != "" || lead.TmuxPaneID != "" || lead.IsActive != nil && !*lead.IsActive {
				t.Errorf("lead is %+v", lead)
			}
			if c.LeadAgentID != lead.AgentID || c.CreatedAt == 0 {
				t.Errorf("config is %+v", c)
			}
			// The same from fields alone: the order of the table is the recorded one.
			fresh := *c
			fresh.parsed = nil
			fresh.Members = nil
			for _, m := range c.Members {
				m.parsed = nil
				fresh.Members = append(fresh.Members, m)
			}
			if got := marshal(t, &fresh); !bytes.Equal(got, data) {
				t.Errorf("written from fields:\n%s", got)
			}
		})
	}
}

func TestUnknownKeysStayInTheirPlace(t *testing.T) {
	t.Parallel()
	const before = `{
  "new": {"b":1,"a":[]},
  "name": "x",
  "createdAt": 1.7e3,
  "members": [
    {"agentId":"w@x","later":null,"name":"w","color":null,"joinedAt":1,"tmuxPaneId":"","cwd":"/","subscriptions":[],"last":"\u00e9"}
  ],
  "leadAgentId": "l",
  "hiddenPaneIds": []
}
`
	c := parse(t, before)
	m := c.Member("w@x")
	m.Color, m.Mode = "red", "plan"
	c.Description = "d"
	golden(t, "config-unknown-keys.json", marshal(t, c))

	again := parse(t, string(marshal(t, c)))
	if again.Member("w").Mode != "plan" || again.CreatedAt != 1700 {
		t.Errorf("read back %+v", again)
	}
	m = c.Member("w")
	m.Color, m.Mode = "", ""
	c.Description = ""
	if got := string(marshal(t, c)); strings.Contains(got, "mode") || strings.Contains(got, "description") || strings.Contains(got, `"red"`) {
		t.Errorf("cleared fields stay:\n%s", got)
	}
}

func TestParseConfigRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":       "",
		"torn":        `{"name":"x","members":[`,
		"array":       `[]`,
		"null":        `null`,
		"after":       `{"name":"x"} {}`,
		"no name":     `{"members":[]}`,
		"wrong type":  `{"name":5}`,
		"bad member":  `{"name":"x","members":[5]}`,
		"bad members": `{"name":"x","members":{}}`,
		"not json":    "name: x",
	} {
		_, err := ParseConfig([]byte(text))
		if CodeOf(err) != CodeInternal || ReasonOf(err) != ReasonCorruptConfig || HintOf(err) == "" {
			t.Errorf("%s: %v (code %s, reason %q)", name, err, CodeOf(err), ReasonOf(err))
		}
	}
}

func TestReadConfig(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.json")
	if _, err := ReadConfig(path); !IsCode(err, CodeNotFound) {
		t.Errorf("missing: %v", err)
	}
	for _, text := range []string{"{", ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadConfig(path)
		if !IsCode(err, CodeInternal) || ReasonOf(err) != ReasonCorruptConfig || !strings.Contains(err.Error(), path) {
			t.Errorf("corrupt: %v", err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("the corrupt file became %q, %v", got, err)
		}
	}
	if err := os.WriteFile(path, []byte("\xef\xbb\xbf{\"name\":\"x\"}\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := ReadConfig(path); err != nil || c.Name != "x" {
		t.Errorf("with a BOM: %+v, %v", c, err)
	}
}

func TestSetMemberActive(t *testing.T) {
	t.Parallel()
	yes := true
	fresh := func() *Config {
		return &Config{Name: "x", Members: []ConfigMember{
			{AgentID: "team-lead@x", Name: "team-lead"},
			{AgentID: "w@x", Name: "w", Mode: "plan"},
			{AgentID: "v@x", Name: "v", IsActive: &yes},
		}}
	}
	for _, tc := range []struct {
		id                     string
		active, found, changed bool
	}{
		{"none", true, false, false}, {"v", true, true, false},
		{"v", false, true, true}, {"w", true, true, true}, {"w@x", false, true, true},
	} {
		c := fresh()
		found, changed := c.SetMemberActive(tc.id, tc.active)
		if found != tc.found || changed != tc.changed {
			t.Errorf("SetMemberActive(%q, %v) = %v, %v", tc.id, tc.active, found, changed)
		}
		if found && *c.Member(tc.id).IsActive != tc.active {
			t.Errorf("%q is active: %v", tc.id, !tc.active)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(`{"name":"x","members":[{"agentId":"a","isActive":null,"z":[{}]}],"z":1}`))
	f.Add([]byte(`{"name":"x","name":"y","createdAt":1e400}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseConfig(data)
		if err != nil {
			return
		}
		once := marshal(t, c)
		again, err := ParseConfig(once)
		if err != nil {
			t.Fatalf("cannot read what it wrote: %v\n%s", err, once)
		}
		if twice := marshal(t, again); !bytes.Equal(once, twice) {
			t.Fatalf("not stable:\n%s\n%s", once, twice)
		}
	})
}
