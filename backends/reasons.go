package backends

// Reasons of an Exit that programs compare. Others are free text.
const (
	ReasonPaneKilled   = "pane killed"      // a person closed the pane or its window
	ReasonServerGone   = "tmux server gone" // the terminal server died under the agent
	ReasonTerminalGone = "terminal gone"    // the terminal hung up; the shim cannot know why
	ReasonOOM          = "oom"              // the kernel killed it at its memory limit
	ReasonShimKilled   = "shim killed"      // the holder died without a record
)
