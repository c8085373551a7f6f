package backends

// Keys are the keys that are no text, by name, as a terminal sends them. A terminal
// backend's Attached can press them: Key(ctx, name).
var Keys = map[string]string{"Escape": "\x1b"}
