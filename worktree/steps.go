package worktree

import "context"

type stepsKey struct{}

// WithSteps makes repositories opened with the returned context call f after
// each step of an operation, by name (docs/worktrees.md lists the steps),
// before the next step begins. Tests kill the process there.
func WithSteps(ctx context.Context, f func(step string)) context.Context {
	return context.WithValue(ctx, stepsKey{}, f)
}

func stepsOf(ctx context.Context) func(string) {
	if f, ok := ctx.Value(stepsKey{}).(func(string)); ok {
		return f
	}
	return func(string) {}
}
