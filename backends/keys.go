package backends

// Keys maps the names of keys that are not text to what a terminal sends. A
// terminal backend's Attached can press them: Key(ctx, name).
var Keys = map[string]string{
	"Escape": "\x1b", "Enter": "\r",
	// Choices in the menus of dialogs.
	"y": "y", "n": "n", "1": "1", "2": "2", "3": "3", "4": "4", "5": "5", "6": "6", "7": "7", "8": "8", "9": "9",
}
