package worktree

import "context"

type stepsKey struct{}

// WithSteps has repositories that are opened with the context call f at every step
// of what they do, by name (docs/worktrees.md lists them), before the next one
// begins. Tests kill the process there.
func WithSteps(ctx context.Context, f func(step string)) context.Context {
	return context.WithValue(ctx, stepsKey{}, f)
}

func stepsOf(ctx context.Context) func(string) {
	if f, ok := ctx.Value(stepsKey{}).(func(string)); ok {
		return f
	}
	return func(string) {}
}
