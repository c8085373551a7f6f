package adapter

import "testing"

// TestHookCommand: the small program stands before teamctl in the hooks that answer at once.
func TestHookCommand(t *testing.T) {
	t.Parallel()
	small := []string{"/o'b/small", "2", "/o'b/teamctl"}
	for _, c := range []struct {
		event string
		small []string
		want  string
	}{
		{"PreToolUse", nil, `'/o'\''b/teamctl' hook claude PreToolUse`},
		{"PreToolUse", small, `[ -x '/o'\''b/small' ] && exec '/o'\''b/small' '2' '/o'\''b/teamctl' hook claude PreToolUse; exec '/o'\''b/teamctl' hook claude PreToolUse`},
		{"PermissionRequest", small, `'/o'\''b/teamctl' hook claude PermissionRequest`},
		{Wait, small, `'/o'\''b/teamctl' hook claude Wait`},
	} {
		if got := (Input{small: c.small}).hooks("/o'b/teamctl").command(Claude, c.event); got != c.want {
			t.Errorf("%s with %q: %s, want %s", c.event, c.small, got, c.want)
		}
	}
}
