package backends

// Reasons of an Exit that programs compare. Other reasons are free text.
const (
	ReasonPaneKilled   = "pane killed"      // the user closed the pane or its window
	ReasonServerGone   = "tmux server gone" // the terminal server died while the agent was running
	ReasonTerminalGone = "terminal gone"    // the terminal hung up; the shim cannot know why
	ReasonOOM          = "oom"              // the kernel killed it at its memory limit
	ReasonShimKilled   = "shim killed"      // the shim died without recording the exit
)
