package backends

import "github.com/teamctl/teamctl/team"

// Reasons of an Exit that programs compare. Other reasons are free text.
const (
	ReasonPaneKilled   = team.WhyPaneKilled   // the user closed the pane or its window
	ReasonServerGone   = team.WhyServerGone   // the terminal server died while the agent was running
	ReasonTerminalGone = team.WhyTerminalGone // the terminal hung up; the shim cannot know why
	ReasonOOM          = team.WhyOOM          // the kernel killed it at its memory limit
	ReasonShimKilled   = team.WhyShimKilled   // the shim died without recording the exit
	// The shim was sent SIGTERM, as all processes are when the machine shuts down.
	ReasonShimTerminated = team.WhyShimTerminated
)
