package main

// setting is the result of a command that shows or changes a property of a member.
type setting[T ~string] struct {
	status      string // shown, changed or already_set
	before, now T      // before is set after a change
}

// showOrSet changes the current word to the second argument of the command, if there is one.
func showOrSet[T ~string](args []string, current T, set func(T) (T, error)) (setting[T], error) {
	if len(args) < 2 {
		return setting[T]{status: "shown", now: current}, nil
	}
	now, err := set(T(args[1]))
	switch {
	case err != nil:
		return setting[T]{}, err
	case now == current:
		return setting[T]{status: "already_set", now: now}, nil
	}
	return setting[T]{status: "changed", before: current, now: now}, nil
}

// print prints it for people; is precedes the value of a member that had it already.
func (s setting[T]) print(a *app, member, is string) {
	switch s.status {
	case "changed":
		a.out.line("%s: %s -> %s", member, s.before, s.now)
	case "already_set":
		a.out.line("%s is %s%s already", member, is, s.now)
	default:
		a.out.line("%s", s.now)
	}
}
