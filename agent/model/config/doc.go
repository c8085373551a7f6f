// Package config opens the models that $TEAMCTL_HOME/config.yaml names.
//
// Known providers need no entry: their protocol, address and key variable are in
// a table. A key is read for each request from where the file says, and kept nowhere. A key
// that happens to be in the environment chooses no model: without a model in the file, the
// default is the script model.
//
// What a model can take and costs comes from the file, else from what its provider lists;
// what neither says stays unknown.
package config
