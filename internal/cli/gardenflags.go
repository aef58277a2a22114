package cli

import (
	"strings"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/gardenlite/gardenlite/internal/garden/admission"
	"github.com/gardenlite/gardenlite/internal/landscape"
)

// The flags of up and exec that change the API server of the garden.
const (
	bareFlag             = "bare"
	enableAdmissionFlag  = "enable-admission-plugins"
	disableAdmissionFlag = "disable-admission-plugins"
	featureGatesFlag     = "feature-gates"
)

func addGardenFlags(cmd *cobra.Command, c *landscape.Config) {
	f := cmd.Flags()
	f.BoolVar(&c.Bare, bareFlag, false, "a garden with nothing but what gardener-apiserver creates by itself: no seeds, no default "+
		"landscape, and no controllers unless --controllers selects some")
	f.StringSliceVar(&c.Admission.Enable, enableAdmissionFlag, nil,
		"admission plugins of the garden to enable in addition to the default: names of gardener-apiserver's and kube-apiserver's")
	f.StringSliceVar(&c.Admission.Disable, disableAdmissionFlag, nil, "admission plugins of the garden to disable; without "+
		"ValidatingAdmissionWebhook, SeedRestriction is disabled too")
	for _, name := range []string{enableAdmissionFlag, disableAdmissionFlag} {
		_ = cmd.RegisterFlagCompletionFunc(name, completeAdmissionPlugins)
	}
	c.FeatureGates = map[string]bool{}
	f.Var(cliflag.NewMapStringBool(&c.FeatureGates), featureGatesFlag,
		"feature gates of gardener-apiserver: NAME=true or NAME=false, separated by commas")
}

// completeBare sets what --bare implies for flags that are not set.
func completeBare(cmd *cobra.Command, c *landscape.Config) {
	if c.Bare && !cmd.Flags().Changed("seeds") {
		c.Seeds = 0
	}
	if c.Bare && !cmd.Flags().Changed("controllers") {
		c.Controllers = []string{}
	}
}

// completeAdmissionPlugins completes the last plugin of a list.
func completeAdmissionPlugins(_ *cobra.Command, _ []string, typed string) (all []string, _ cobra.ShellCompDirective) {
	before := typed[:strings.LastIndex(typed, ",")+1]
	for _, name := range admission.Names() {
		all = append(all, before+name)
	}
	return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
