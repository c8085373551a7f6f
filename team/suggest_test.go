package team

import "testing"

func TestClosest(t *testing.T) {
	t.Parallel()
	options := []string{"dependsOn", "description", "subject", "id", "run"}
	for in, want := range map[string]string{
		"dependOn": "dependsOn", "depends_on": "dependsOn", "DEPENDSON": "dependsOn",
		"reason": "", "subbbbject": "", "disruption": "", "ru": "run", "dx": "",
		"sujbect": "subject", "desc": "description", "rnu": "run", "owner": "", "": "", "zz": "",
	} {
		if got := Closest(in, options); got != want {
			t.Errorf("Closest(%q) = %q, want %q", in, got, want)
		}
	}
	if got := Closest("tsk", []string{"ask", "task", "team"}); got != "task" {
		t.Errorf("a first letter is seldom wrong: %q", got)
	}
}
