// Package worktree makes, reads, saves and removes the git worktrees of a
// team's members, and never loses work in them.
//
// It knows git and nothing else: which member needs a worktree, and when, is
// decided above. Every git process is started by one function (see git.go), and
// every command of a person's (gate, setup) by one other (command.go). git runs in
// argv form, with the caller's GIT_* variables taken out, hooks and background
// maintenance off, and no terminal.
//
// # What lies where
//
// In the repository's common directory:
//
//	teamctl/lock       flock, never unlinked: registration, removal and repair are serial
//	teamctl/ops/*.op   one file per create or remove under way, flock held by its process
//	teamctl/index.*    temporary indexes of snapshots
//	worktrees/<id>/teamctl.json
//	                   what Create recorded: the base commit; goes with the registration
//	worktrees/<id>/teamctl-doing.json
//	                   a commit, merge, rebase or restore under way there (cut.go)
//	worktrees/<id>/teamctl-checkpoint.json
//	                   what the last checkpoint saw
//	refs/teamctl/rescue/<team>/<agent>/<time>
//	                   snapshots taken before something was removed or undone
//	refs/teamctl/checkpoint/<team>/<agent>/<time>
//	                   snapshots taken in passing, the newest twenty
//
// # Create
//
// Ten `git worktree add` at once fail in plain git, so the registration is made
// with --no-checkout under the lock and the files are checked out outside it.
// An op file is written before the first change and removed after the last:
//
//	op written -> registered (branch, admin directory, .git file) -> recorded -> checked out -> op removed
//
// Its lock is inherited by the git processes that create starts. A lock that is
// free therefore means that neither teamctl nor its git lives, and the next
// Create or Repair in the repository undoes what stands: directory,
// registration, and the branch if create made it and it still is where it was
// made. What does not look like a checkout cut short is snapshotted first.
//
// # Remove
//
// Facts first, then the lock, then the directory is renamed to a sibling, and
// the facts are read again where nobody can reach it by its path any more:
//
//	op written -> moved aside -> facts again (forced: snapshot) -> op marked doomed
//	           -> registration dropped -> branch -> files deleted -> op removed
//
// A crash before "doomed" is undone by renaming back; from there on everything
// worth keeping is in a ref, and the removal is completed. Anything that could
// not be inspected is kept.
//
// # Snapshot
//
// A snapshot is shaped like a stash: a commit whose tree is the working tree
// (tracked and untracked, not ignored), its first parent HEAD and its second a
// commit of the index. `git stash apply --index <ref>` understands it. It is
// made with a copy of the index; index and working tree are not touched.
//
// # Recover
//
// A git that is killed while it writes files leaves some missing, and for a
// fast-forward nothing that says so. What this package does in a worktree is
// therefore noted there first; Recover, called when a worker begins, finds the
// note of a process that is dead, saves everything, and goes back to the last
// commit. A commit that was cut short wrote no files: only its locks go.
//
// # Merge lane
//
// Branches are stacked on the target as commits without a checkout; gates run in
// a scratch worktree; the target moves by compare-and-swap:
//
//	stack -> gates -> note "landing old new" -> target moved -> note "landed"
//
// The caller keeps the notes. After a kill, what is contained in the target has
// landed, and everything else may be done again: only the target ever moves.
//
// # Never
//
// No write to the user's configuration; no `--force` over changes; no branch
// deleted whose commits are not contained elsewhere; nothing in the person's
// main checkout that changes its index or its files, but the fast-forward of a
// clean one that was asked for.
package worktree
