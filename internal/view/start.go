package view

import "context"

// Beginner is a screen's access to a machine without a team.
type Beginner interface {
	// Start returns what a person needs to begin. It may take a moment, since it runs programs.
	Start(ctx context.Context) (Start, error)
	// Begin runs commands one after the other, up to the first that fails, and returns what the last
	// one has said.
	Begin(ctx context.Context, commands []Command) (said string, err error)
}

// Start is what a person needs where there is no team.
type Start struct {
	Found    []Finding // only what is not in order
	Commands []Command // the first ones, each of which needs those before it
}

// Finding is something on the machine that is not in order.
type Finding struct {
	Name, Detail, Hint string
	Fails              bool // it keeps teamctl from working
}

// Command is a command of teamctl that a screen can run.
type Command struct {
	Args  []string // without the program's name
	Line  string   // as it is typed
	About string
}
