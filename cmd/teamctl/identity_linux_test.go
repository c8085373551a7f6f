package main

import "testing"

// A variable of another process is found as getenv finds it: the whole name, the first of several.
func TestVariableOfAProcess(t *testing.T) {
	t.Parallel()
	env := []byte("TEAMCTL_HOMES=a\x00XTEAMCTL_HOME=b\x00TEAMCTL_HOME\x00EMPTY=\x00TEAMCTL_HOME=c=d\x00TEAMCTL_HOME=e\x00")
	for name, want := range map[string]string{"TEAMCTL_HOME": "c=d", "TEAMCTL_HOMES": "a", "EMPTY": "", "TEAMCTL": "", "none": ""} {
		if got := variable(env, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
