package supervisor

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// Check refuses what cannot be spawned. The supervisor does it too, for whatever can reach
// its socket may send a request.
func (in SpawnIn) Check() error {
	if key, err := team.AgentKey(in.Name); err != nil {
		return err
	} else if key != in.Name {
		return team.Errorf(team.CodeInvalid, "%q cannot name a member", in.Name).
			WithReason("invalid_name").WithHint("use small letters, digits and '-'")
	}
	role, err := team.ParseRole(string(in.Role))
	if err == nil && in.Role != "" && role != in.Role {
		err = team.Errorf(team.CodeInvalid, "unknown role %q", in.Role)
	}
	if err != nil {
		return err
	}
	if _, err := team.ParseRestartPolicy(string(in.Spec.Restart)); err != nil {
		return err
	}
	if err := in.Spec.Limits.Check(); err != nil {
		return err
	}
	for k := range in.Spec.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") {
			return team.Errorf(team.CodeInvalid, "%q cannot name an environment variable", k)
		}
	}
	if err := isDir("working directory", in.Spec.Cwd); err != nil {
		return err
	}
	switch tree := cmp.Or(in.Spec.WorktreeMode, "none"); tree {
	case "own", "none":
		return nil
	default:
		return isDir("worktree", tree)
	}
}

// isDir refuses a path that is not the absolute one of a directory; "" is none.
func isDir(what, path string) error {
	if path == "" {
		return nil
	}
	if fi, err := os.Stat(path); !filepath.IsAbs(path) || filepath.Clean(path) != path || err != nil || !fi.IsDir() {
		return team.Errorf(team.CodeInvalid, "%s %q is not the absolute path of a directory", what, path).WithReason("invalid_path")
	}
	return nil
}
