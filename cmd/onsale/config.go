package main

import "github.com/alecthomas/kong"

// ConfigCmd is `onsale config`: the configuration as it is in force, secrets masked, each setting with what it means.
type ConfigCmd struct {
	configFlags
	Demo bool `help:"As serve --demo would see it."`
}

// Run prints it as YAML that serve reads.
func (c *ConfigCmd) Run(k *kong.Context) error {
	flags := map[string]string{}
	if c.Demo {
		flags["demo"] = "true"
	}
	configured, err := c.load(flags)
	if err != nil {
		return err
	}
	return configured.Print(k.Stdout)
}
