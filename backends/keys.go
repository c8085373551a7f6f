package backends

// Keys are the keys that are no text, by name, as a terminal sends them. A terminal
// backend's Attached can press them: Key(ctx, name).
var Keys = map[string]string{
	"Escape": "\x1b", "Enter": "\r",
	// They choose in the menus of dialogs.
	"y": "y", "n": "n", "1": "1", "2": "2", "3": "3", "4": "4", "5": "5", "6": "6", "7": "7", "8": "8", "9": "9",
}
