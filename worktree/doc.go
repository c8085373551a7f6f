// Package worktree creates, inspects, saves and removes the git worktrees of a
// team's members, and never loses work in them.
//
// It is not an API for other modules. It knows git and nothing else: callers
// decide which member needs a worktree, and when. One function starts every git
// process (see git.go), and another runs every user command such as a gate or a
// setup step (command.go). git runs with an argument vector, without the
// caller's GIT_* variables, with hooks and background maintenance disabled, and
// without a terminal.
//
// # Files
//
// In the repository's common directory:
//
//	teamctl/lock       flock, never unlinked: serialises registration, removal and repair
//	teamctl/ops/*.op   one file per running create or remove, flock held by its process
//	teamctl/index.*    one directory per temporary index of a snapshot, flock held by its process
//	worktrees/<id>/teamctl.json
//	                   what Create recorded: the base commit; deleted with the registration
//	worktrees/<id>/teamctl-doing.json
//	                   a running commit, merge, rebase or restore (cut.go)
//	worktrees/<id>/teamctl-checkpoint.json
//	                   what the last checkpoint saw
//	refs/teamctl/rescue/<team>/<agent>/<time>
//	                   snapshots taken before something was removed or undone
//	refs/teamctl/checkpoint/<team>/<agent>/<time>
//	                   periodic snapshots, the newest twenty
//
// # Create
//
// Ten concurrent `git worktree add` fail in plain git, so Create registers the
// worktree with --no-checkout under the lock and checks out the files outside
// it. It writes an op file before the first change and removes it after the
// last:
//
//	op written -> registered (branch, admin directory, .git file) -> recorded -> checked out -> op removed
//
// The git processes that Create starts inherit the lock on the op file. A free
// lock therefore means that neither teamctl nor its git is running, and the
// next Create or Repair in the repository undoes what exists: the directory,
// the registration, and the branch if Create made it and it has not moved. What
// does not look like an interrupted checkout is snapshotted first.
//
// # Remove
//
// Remove collects the facts, takes the lock, renames the directory to a
// sibling, and collects the facts again, because no process can now reach the
// directory by its path:
//
//	op written -> moved aside -> facts again (forced: snapshot) -> op marked doomed
//	           -> registration dropped -> branch -> files deleted -> op removed
//
// A crash before "doomed" is undone by renaming back. From there on everything
// worth keeping is in a ref, and the removal is completed. Whatever could not
// be inspected is kept.
//
// # Snapshot
//
// A snapshot has the shape of a stash: a commit whose tree is the working tree
// (tracked and untracked, not ignored), with HEAD as its first parent and a
// commit of the index as its second. `git stash apply --index <ref>`
// understands it. It is made with a copy of the index; index and working tree
// are not touched.
//
// # Recover
//
// If git is killed while it writes files, some files are missing, and after a
// fast-forward nothing records that. This package therefore records each
// operation in the worktree before it starts. Recover, called when a worker
// begins, finds the record of a dead process, saves everything, and returns to
// the last commit. An interrupted commit wrote no files, so only its locks are
// removed.
//
// # Merge lane
//
// A lane stacks branches on the target as commits without a checkout, runs the
// gates in a scratch worktree, and moves the target by compare-and-swap:
//
//	stack -> gates -> note "landing old new" -> target moved -> note "landed"
//
// The caller stores the notes. After a kill, whatever the target contains has
// landed, and everything else may be repeated: only the target ever moves.
//
// # Never
//
// The package never writes to the user's configuration, never uses `--force`
// over changes, and never deletes a branch whose commits are not contained
// elsewhere. In the user's main checkout it changes neither index nor files,
// except to fast-forward a clean one on request.
package worktree
