package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"

	"github.com/alecthomas/kong"

	"onsale/internal/app"
)

// OrganizerCmd is `onsale organizer`: who sells, and who may do what for them. It works on a running server through the
// data folder's socket, else on the folder itself.
type OrganizerCmd struct {
	Add      organizerAdd      `cmd:"" help:"Make an organizer, and its first owner."`
	List     organizerList     `cmd:"" help:"List all organizers."`
	Members  organizerMembers  `cmd:"" help:"List who has a role, and open invitations."`
	Invite   organizerInvite   `cmd:"" help:"Offer a role by mail; prints the word with which it is accepted, too."`
	Withdraw organizerWithdraw `cmd:"" help:"Take an invitation back."`
	Role     organizerRole     `cmd:"" help:"Give a role, or take it away."`
}

type organizerKey struct {
	Key string `arg:"" help:"The organizer's key, as onsale organizer list shows it."`
}

func (k organizerKey) path(rest string) string { return "/organizers/" + url.PathEscape(k.Key) + rest }

type organizerAdd struct {
	Key   string `arg:"" help:"A short name of letters, digits and hyphens, unique. Events imported from files belong to house."`
	Name  string `required:"" help:"The name that people see."`
	Owner string `required:"" placeholder:"EMAIL" help:"The first owner's e-mail address: whoever signs in with it is the owner."`
	configFlags
}

// Run makes the organizer.
func (c *organizerAdd) Run(ctx context.Context, k *kong.Context) error {
	var done app.AdminOrganizer
	if err := c.begin(ctx, "POST", "/organizers", app.OrganizerRequest{Key: c.Key, Name: c.Name, Owner: c.Owner}, &done); err != nil {
		return err
	}
	_, err := fmt.Fprintf(k.Stdout, "%s  %s  %s\n", done.ID, done.Key, done.Name)
	return err
}

type organizerList struct{ configFlags }

// Run lists the organizers.
func (c *organizerList) Run(ctx context.Context, k *kong.Context) error {
	var all []app.AdminOrganizer
	if err := c.call(ctx, "GET", "/organizers", nil, &all); err != nil {
		return err
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(k.Stdout, "No organizers. onsale organizer add KEY --name NAME --owner EMAIL makes one.")
		return err
	}
	rows := [][]string{{"ID", "KEY", "NAME"}}
	for _, o := range all {
		rows = append(rows, []string{o.ID, o.Key, cut(o.Name, 40)})
	}
	return printTable(k.Stdout, rows)
}

type organizerMembers struct {
	organizerKey
	configFlags
}

// Run lists the organizer's people.
func (c *organizerMembers) Run(ctx context.Context, k *kong.Context) error {
	var people app.AdminPeople
	if err := c.call(ctx, "GET", c.path("/members"), nil, &people); err != nil {
		return err
	}
	return printPeople(k.Stdout, people)
}

type organizerInvite struct {
	organizerKey
	Email  string `arg:"" help:"The e-mail address; only who signs in with it can accept."`
	Role   string `required:"" enum:"owner,operator,viewer,door" help:"owner, operator, viewer or door."`
	Locale string `default:"en" enum:"en,zh-CN" help:"The mail's language: en or zh-CN."`
	configFlags
}

// Run makes the invitation.
func (c *organizerInvite) Run(ctx context.Context, k *kong.Context) error {
	var i app.AdminInvitation
	in := app.MemberRequest{Who: c.Email, Role: c.Role, Locale: c.Locale}
	if err := c.call(ctx, "POST", c.path("/invitations"), in, &i); err != nil {
		return err
	}
	_, err := fmt.Fprintf(k.Stdout, "%s  %s as %s, until %s\nToken (once, only for that address): %s\n",
		i.ID, i.Email, i.Role, i.Expires.Local().Format("2006-01-02 15:04 MST"), i.Token)
	return err
}

type organizerWithdraw struct {
	organizerKey
	Invitation string `arg:"" help:"The invitation's id, as onsale organizer members shows it."`
	configFlags
}

// Run takes the invitation back.
func (c *organizerWithdraw) Run(ctx context.Context, k *kong.Context) error {
	var people app.AdminPeople
	if err := c.call(ctx, "DELETE", c.path("/invitations/"+url.PathEscape(c.Invitation)), nil, &people); err != nil {
		return err
	}
	return printPeople(k.Stdout, people)
}

type organizerRole struct {
	Set    organizerRoleSet    `cmd:"" help:"Give somebody a role, in place of the one they have."`
	Remove organizerRoleRemove `cmd:"" help:"Take somebody's role away."`
}

type organizerRoleSet struct {
	organizerKey
	Who  string `arg:"" help:"An e-mail address, or a customer's id."`
	Role string `arg:"" enum:"owner,operator,viewer,door" help:"owner, operator, viewer or door."`
	configFlags
}

// Run gives the role.
func (c *organizerRoleSet) Run(ctx context.Context, k *kong.Context) error {
	var people app.AdminPeople
	if err := c.call(ctx, "POST", c.path("/members"), app.MemberRequest{Who: c.Who, Role: c.Role}, &people); err != nil {
		return err
	}
	return printPeople(k.Stdout, people)
}

type organizerRoleRemove struct {
	organizerKey
	Who string `arg:"" help:"An e-mail address, or a customer's id."`
	configFlags
}

// Run takes the role away.
func (c *organizerRoleRemove) Run(ctx context.Context, k *kong.Context) error {
	var people app.AdminPeople
	if err := c.call(ctx, "POST", c.path("/members/remove"), app.MemberRequest{Who: c.Who}, &people); err != nil {
		return err
	}
	return printPeople(k.Stdout, people)
}

func printPeople(w io.Writer, people app.AdminPeople) error {
	if len(people.Members)+len(people.Invitations) == 0 {
		_, err := fmt.Fprintln(w, "Nobody yet: onsale organizer role set KEY EMAIL owner")
		return err
	}
	rows := [][]string{{"ROLE", "ID", "EMAIL", "NAME"}}
	for _, m := range people.Members {
		rows = append(rows, []string{m.Role, m.Customer, strings.Join(m.Emails, ", "), cut(m.Name, 24)})
	}
	for _, i := range people.Invitations {
		rows = append(rows, []string{"invited as " + i.Role, i.ID, i.Email, "until " + i.Expires.Local().Format("2006-01-02 15:04")})
	}
	return printTable(w, rows)
}

// printTable prints rows in columns, the first row their heads, without blanks at the ends of lines.
func printTable(w io.Writer, rows [][]string) error {
	var text bytes.Buffer
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}
