package agent

import "context"

type stepsKey struct{}

// WithSteps makes each agent call f before and after each commit, so that a test can end the
// process there.
func WithSteps(ctx context.Context, f func(agent, step string)) context.Context {
	return context.WithValue(ctx, stepsKey{}, f)
}

// StepsOf returns ctx with what WithSteps has added to from.
func StepsOf(ctx, from context.Context) context.Context {
	if f, ok := from.Value(stepsKey{}).(func(string, string)); ok {
		return WithSteps(ctx, f)
	}
	return ctx
}

func step(ctx context.Context, agent, name string) {
	if f, ok := ctx.Value(stepsKey{}).(func(string, string)); ok {
		f(agent, name)
	}
}
