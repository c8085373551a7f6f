package team

import (
	"regexp"
	"strings"
	"testing"
)

func TestTeamKey(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"My Team!":              "my-team-",
		"a.b":                   "a-b",
		"a-b":                   "a-b",
		"a_b":                   "a-b",
		"ABC123":                "abc123",
		"-x":                    "-x",
		"x":                     "x",
		strings.Repeat("a", 50): strings.Repeat("a", 50),
		"caf\u00e9":             "caf-",
		"cafe\u0301":            "caf-", // decomposed, as macOS writes it
		"v\u1ebft":              "v-t",
		"ve\u0302\u0301t":       "v-t",
		"\u0301a":               "-a",
		"\u30c1\u30fc\u30e0 7":  "----7",
	} {
		if got, err := TeamKey(raw); got != want || err != nil {
			t.Errorf("TeamKey(%q) = %q, %v; want %q", raw, got, err, want)
		}
	}
}

// hostile names nothing that may be created.
var hostile = []string{
	"", " ", "\t", ".", "..", "...", "../x", "../../x", "/abs", "a/b", `a\b`, `..\x`, "a..b",
	"test@team", "@", "a\x00b", "a\nb", "a\x1b[31m", "a\x7f", "a\u0085",
	"a\u200bb", // zero width
	"a\u202eb", // right to left override
	"a\ufeffb", // byte order mark
	"a\u00a0b", // no-break space: looks like one
	"\xff\xfe", // not UTF-8
	"a\xc3",    // torn UTF-8
	"!!!", "---", "\u00e9", "e\u0301", "\u30c1\u30fc\u30e0",
	strings.Repeat("a", 51), strings.Repeat("a", 300), "a" + strings.Repeat("\u0301", 1000),
}

func TestHostileNames(t *testing.T) {
	t.Parallel()
	for _, raw := range hostile {
		if got, err := TeamKey(raw); !IsCode(err, CodeInvalid) || got != "" || HintOf(err) == "" {
			t.Errorf("TeamKey(%q) = %q, %v", raw, got, err)
		}
		if got, err := AgentKey(raw); !IsCode(err, CodeInvalid) || got != "" {
			t.Errorf("AgentKey(%q) = %q, %v", raw, got, err)
		}
	}
}

func TestAgentKey(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"Bob": "bob", "bob": "bob", "-x": "x", "--rf": "rf", "a b": "a-b", "CON": "con", "7": "7",
		strings.Repeat("b", 32): strings.Repeat("b", 32), "team-lead2": "team-lead2", "lead": "lead",
	} {
		if got, err := AgentKey(raw); got != want || err != nil {
			t.Errorf("AgentKey(%q) = %q, %v; want %q", raw, got, err, want)
		}
	}
	for _, raw := range []string{"team-lead", "Team Lead", "-team-lead", "TEAM.LEAD", strings.Repeat("b", 33)} {
		if got, err := AgentKey(raw); !IsCode(err, CodeInvalid) {
			t.Errorf("AgentKey(%q) = %q, %v", raw, got, err)
		}
	}
}

func FuzzNames(f *testing.F) {
	for _, s := range append(hostile, "My Team!", "cafe\u0301", "team-lead") {
		f.Add(s)
	}
	teamRE := regexp.MustCompile(`^[a-z0-9-]{1,50}$`)
	agentRE := regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)
	f.Fuzz(func(t *testing.T, raw string) {
		if key, err := TeamKey(raw); err == nil {
			if !teamRE.MatchString(key) || strings.Trim(key, "-") == "" {
				t.Errorf("TeamKey(%q) = %q", raw, key)
			}
			if again, err := TeamKey(key); again != key || err != nil {
				t.Errorf("TeamKey(%q) = %q, %v: not stable", key, again, err)
			}
		}
		if key, err := AgentKey(raw); err == nil {
			if !agentRE.MatchString(key) || key == LeadName {
				t.Errorf("AgentKey(%q) = %q", raw, key)
			}
			if again, err := AgentKey(key); again != key || err != nil {
				t.Errorf("AgentKey(%q) = %q, %v: not stable", key, again, err)
			}
		}
		if name, err := InboxName(raw); err == nil {
			if strings.ContainsAny(name, "/\\\x00@") || strings.HasPrefix(name, ".") || name == "" {
				t.Errorf("InboxName(%q) = %q", raw, name)
			}
		}
	})
}

func TestUniqueName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 32)
	for _, tc := range []struct {
		name  string
		taken []string
		want  string
	}{
		{"bob", nil, "bob"},
		{"bob", []string{"bob"}, "bob-2"},
		{"bob", []string{"bob", "bob-2", "bob-3"}, "bob-4"},
		{"Bob", []string{"bob"}, "Bob-2"},
		{"Bob", []string{"bob", "bob-2"}, "Bob-3"},
		{long, []string{long}, strings.Repeat("a", 30) + "-2"},
		{strings.Repeat("a", 29) + "-bb", []string{strings.Repeat("a", 29) + "-bb"}, strings.Repeat("a", 29) + "-2"},
	} {
		taken := func(n string) bool {
			for _, x := range tc.taken {
				if x == n {
					return true
				}
			}
			return false
		}
		if got := UniqueName(tc.name, taken); got != tc.want {
			t.Errorf("UniqueName(%q, %q) = %q, want %q", tc.name, tc.taken, got, tc.want)
		}
	}
}

func TestAgentIDs(t *testing.T) {
	t.Parallel()
	if got := AgentID("worker", "eps"); got != "worker@eps" {
		t.Error(got)
	}
	for id, want := range map[string][2]string{"a@b": {"a", "b"}, "a@b@c": {"a", "b@c"}, "@t": {"", "t"}} {
		name, key, ok := ParseAgentID(id)
		if !ok || name != want[0] || key != want[1] {
			t.Errorf("ParseAgentID(%q) = %q, %q, %v", id, name, key, ok)
		}
	}
	if _, _, ok := ParseAgentID("plain"); ok {
		t.Error("a plain name is no agent id")
	}
}

func TestInboxName(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]string{"a@t": "a-t", "a@b@c": "a-b-c", "team-lead": "team-lead", "Real Name": "Real Name", "\u00e9": "\u00e9"} {
		if got, err := InboxName(agent); got != want || err != nil {
			t.Errorf("InboxName(%q) = %q, %v", agent, got, err)
		}
	}
	for _, agent := range []string{"", ".", "..", "a..b", ".hidden", "a/b", `a\b`, "a\x00", "a\nb", "a\u202e", "\xff", strings.Repeat("a", 201)} {
		if got, err := InboxName(agent); !IsCode(err, CodeInvalid) {
			t.Errorf("InboxName(%q) = %q, %v", agent, got, err)
		}
	}
}

func TestSessionKeys(t *testing.T) {
	t.Parallel()
	if got := LeadSessionKey("", "my-project"); got != "agent:default:team:my-project" {
		t.Error(got)
	}
	if got := LeadSessionKey("coder", "x"); got != "agent:coder:team:x" {
		t.Error(got)
	}
	re := regexp.MustCompile(`^agent:coder:teammate:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for range 100 {
		key := TeammateSessionKey("coder")
		if !re.MatchString(key) || seen[key] {
			t.Fatalf("key %q", key)
		}
		seen[key] = true
	}
}

func TestNextColor(t *testing.T) {
	t.Parallel()
	var used []string
	for i := range 2 * len(Colors) {
		c := NextColor(used)
		if want := Colors[i%len(Colors)]; c != want {
			t.Errorf("colour %d is %s, want %s", i, c, want)
		}
		used = append(used, c)
	}
	if got := NextColor([]string{"green", "", "#D94A4A"}); got != "blue" {
		t.Error(got)
	}
}
