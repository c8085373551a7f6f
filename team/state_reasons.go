package team

import "slices"

// Reasons of a member's state (the REASON of ps, reason of a Member in JSON). Those that end in a
// colon or a space begin a reason; what follows is for people.
const (
	WhyCrashLoop      = "crash loop: gave up"
	WhyDone           = "exit 125: done"
	WhyEndedUnseen    = "ended while no supervisor looked"
	WhyExecFailed     = "exec failed: "
	WhyExitZero       = "exit 0"
	WhyFilesLost      = "its files could not be read"
	WhyGoexit         = "the agent's goroutine was ended by runtime.Goexit"
	WhyInterrupted    = "its start was interrupted"
	WhyLimited        = string(Limited)
	WhyNoHooks        = "its program runs no hooks (a setting or a policy may turn them off): mail is typed when it is idle, and states are read off its screen"
	WhyNoRestart      = "restart policy never"
	WhyNotReady       = "not ready after "
	WhyOOM            = "oom"
	WhyOwnerGone      = "supervisor stopped"
	WhyPaneKilled     = "pane killed"
	WhyPanic          = "panic: "
	WhyPaused         = "paused"
	WhyServerGone     = "tmux server gone"
	WhyShimKilled     = "shim killed"
	WhyShimTerminated = "shim terminated"
	WhySilent         = "its program reports no state: "
	WhyStartFailed    = "start failed: "
	WhyStopped        = "stopped"
	WhyTerminalGone   = "terminal gone"
	WhyUnknown        = "state unknown, it may live: "
	WhyWaiting        = string(Waiting)
	StopApproved      = "approved"
	StopAlreadyLeft   = "already_left"
	StopAlready       = "already_stopped"
	StopDeadline      = "deadline"
	StopFailed        = "failed"
	StopForced        = "forced"
	StopRejected      = "rejected"
	StopRequested     = "requested"
	StopUnasked       = "stopped"
)

var stateReasons = []Word{
	{WhyCrashLoop, "It failed too often in a row, and is not started again."},
	{WhyDone, "It ended with status 125: it is done, and is not started again."},
	{WhyEndedUnseen, "It ended before a supervisor could adopt it; its exit status is unknown."},
	{WhyExecFailed, "Its command cannot be executed."},
	{WhyExitZero, "It ended with status 0, and its restart policy does not start it again."},
	{WhyFilesLost, "The files of its process cannot be read, so its exit is unknown."},
	{WhyGoexit, "An agent in the supervisor's process ended without a result."},
	{WhyInterrupted, "Its start was never completed: the supervisor that started it is gone."},
	{WhyLimited, "It has reached a usage limit; the evidence follows."},
	{WhyNoHooks, "Its program does not run its hooks."},
	{WhyNoRestart, "It failed, and its restart policy never starts it again."},
	{WhyNotReady, "It has not reported that it is ready in the time that follows."},
	{WhyOOM, "The kernel killed it at its memory limit."},
	{WhyOwnerGone, "It ran in the process of a supervisor that has ended."},
	{WhyPaneKilled, "Its pane or window was closed."},
	{WhyPanic, "An agent in the supervisor's process panicked."},
	{WhyPaused, "It is paused."},
	{WhyServerGone, "The tmux server ended while it was running."},
	{WhyShimKilled, "Its shim was killed before it could record the exit."},
	{WhyShimTerminated, "Its shim was sent SIGTERM, as every process is when the machine shuts down."},
	{WhySilent, "The connection or the hooks that report its state have ended, cannot be opened, do not answer, or do not report yet, and its screen does not show it at work; the source follows."},
	{WhyStartFailed, "It could not be started."},
	{WhyStopped, "An agent in the supervisor's process ended because it was stopped."},
	{WhyTerminalGone, "Its terminal hung up."},
	{WhyUnknown, "Whether its process lives is not known; why follows."},
	{WhyWaiting, "It waits for a person or an answer; the evidence follows."},
}

// StateReasons returns the reasons of a member's state, in alphabetical order of their constants.
func StateReasons() []Word { return slices.Clone(stateReasons) }

var outcomesOfStopping = []Word{
	{StopApproved, "It agreed to shut down, and has ended."},
	{StopAlreadyLeft, "It had left the team before."},
	{StopAlready, "It was not running."},
	{StopDeadline, "It did not answer in time, and was ended."},
	{StopFailed, "It could not be ended."},
	{StopForced, "It was ended without being asked."},
	{StopRejected, "It rejected the request, and goes on."},
	{StopRequested, "It was asked; its answer comes as a message."},
	{StopUnasked, "It takes no requests, and was ended."},
}

// OutcomesOfStopping returns the outcomes of stopping a member.
func OutcomesOfStopping() []Word { return slices.Clone(outcomesOfStopping) }
