package agent

import "context"

type stepsKey struct{}

// WithSteps makes the agent call each before and after each commit, so that a test can end the
// process there.
func WithSteps(ctx context.Context, each func(step string)) context.Context {
	return context.WithValue(ctx, stepsKey{}, each)
}

func step(ctx context.Context, name string) {
	if each, ok := ctx.Value(stepsKey{}).(func(string)); ok {
		each(name)
	}
}
