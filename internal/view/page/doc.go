// Package page writes what a browser shows: documents that need nothing but themselves, made
// from the data of package view. What agents wrote is text in them and never markup.
package page
