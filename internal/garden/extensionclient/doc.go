// Package extensionclient installs, shows and uninstalls extensions for commands: the ControllerDeployment and
// ControllerRegistration of each, what the gardenlets made of them, and their Deployments in the seeds.
package extensionclient
