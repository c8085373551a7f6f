// Package gitenv knows the variables that git sets for the programs that it runs.
//
// A hook or an alias gets them for one command of git in one repository. teamctl may be called
// by one, and what it starts lives on, works in other repositories and makes commits of its own:
// with these variables it would work on the index of the hook, as the author and at the time of
// the commit that called it.
package gitenv

import "strings"

// always reports whether a variable means one command of git, or one repository. The first are those
// of "git rev-parse --local-env-vars", but for GIT_CONFIG_COUNT: git sets that one never, people do.
func always(name string) bool {
	switch name {
	case "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_OBJECT_DIRECTORY",
		"GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_GRAFT_FILE", "GIT_INDEX_FILE",
		"GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE", "GIT_PREFIX", "GIT_INTERNAL_SUPER_PREFIX",
		"GIT_SHALLOW_FILE", "GIT_COMMON_DIR",
		"GIT_NAMESPACE", "GIT_QUARANTINE_PATH", // of a push: the second forbids every change of a ref
		"GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE",
		"GIT_REFLOG_ACTION", "GIT_CHERRY_PICK_HELP":
		return true
	}
	return false
}

// Without returns env, NAME=VALUE each, without what git has set for one command. Who the author
// is, and that there is no editor, people say in the same variables: these count as git's only
// where others show that git has started the process.
func Without(env []string) []string {
	var git, dated bool
	for _, kv := range env {
		switch name, _, _ := strings.Cut(kv, "="); name {
		case "GIT_PREFIX", "GIT_INDEX_FILE", "GIT_DIR":
			git = true
		case "GIT_AUTHOR_DATE":
			dated = true // "git commit" sets the author with the date or not at all
		}
	}
	out := make([]string, 0, len(env))
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		switch name {
		case "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL":
			if git && dated {
				continue
			}
		case "GIT_EDITOR", "GIT_SEQUENCE_EDITOR":
			if git && value == ":" {
				continue
			}
		default:
			if always(name) {
				continue
			}
		}
		out = append(out, kv)
	}
	return out
}
