// Package config opens the models configured in $TEAMCTL_HOME/config.yaml.
//
// Known providers need no entry: a table has their protocol, address and key variable. A key is
// read for each request from its configured source, and never stored. A key in the environment
// selects no model: without a model in the file, the default is the script model.
//
// The limits and prices of a model come from the file, else from the provider's list; otherwise
// they are unknown.
package config
