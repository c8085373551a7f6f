// Package page writes documents for a browser, self-contained and made from the data of package
// view. Texts of agents are escaped and never markup.
package page
