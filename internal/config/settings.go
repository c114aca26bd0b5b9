package config

import (
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"onsale/internal/guard"
)

// A setting is one row of the table.
type setting struct {
	key      string
	doc      string // what it is, its unit, special values, "Defaults to X."
	fallback string // the default, as text
	set      func(text string) error
	get      func() any                                 // string, bool, int, uint64, time.Duration, or a list
	mask     func(text string) string                   // nil: no secret
	node     func(l *loader, source string, n nodeType) // nil: a plain value
}

// settings is the table. Each row writes into c.
func (c *Config) settings() []setting {
	rows := []setting{
		text(&c.Listen, "listen", "127.0.0.1:8080",
			`Where customers' requests are taken, host:port; an empty host is every interface, port 0 a free one. Defaults to "127.0.0.1:8080".`),
		text(&c.MetricsListen, "metrics_listen", "127.0.0.1:9090",
			`Where /readyz and /metrics are served, host:port on a loopback interface; "" is nowhere. Defaults to "127.0.0.1:9090".`),
		text(&c.PublicURL, "public_url", "",
			`The address under which browsers reach this server, https://tickets.example, without a path; "" is not known: cookies are then for plain connections. Defaults to "".`),
		networks(&c.TrustedProxies, "trusted_proxies",
			`Proxies whose word on where a request comes from is believed (Forwarded, X-Forwarded-For): networks or addresses, "10.0.0.0/8, 2001:db8::7". "" is nobody, with demo loopback. Defaults to "".`),
		text(&c.Data, "data", "data",
			`Folder of everything that this node keeps; locked while it runs. Defaults to "data".`),
		yesNo(&c.Demo, "demo",
			"Sandbox payments, demo events and tokens for everybody: for trying things out, on a loopback interface. Defaults to false."),
		yesNo(&c.DemoPublic, "demo_public",
			"Lets a demo listen on other interfaces than loopback, for everybody to play with. Defaults to false."),

		text(&c.Ledger.Kind, "ledger.kind", "sqlite", `Which database keeps everything: "sqlite" (files in data) or "postgres". Defaults to "sqlite".`, "sqlite", "postgres"),
		secret(&c.Ledger.URL, maskURL, "ledger.url",
			`Where PostgreSQL is, postgres://user:password@host:port/database; may lead through PgBouncer, then with default_query_exec_mode=exec. Only with kind "postgres". Defaults to "".`),
		secret(&c.Ledger.DirectURL, maskURL, "ledger.direct_url",
			`The same past PgBouncer, for migrations; "" is ledger.url. Defaults to "".`),

		addresses(&c.Redis.Addresses, "redis.addresses",
			`Redis, by which nodes share waiting rooms and limits, host:port: of one server, of nodes of a cluster, or of sentinels, "10.0.0.1:26379, 10.0.0.2:26379". "" keeps both in this process: for one node. Needs ledger.kind postgres. Defaults to "".`),
		text(&c.Redis.Username, "redis.username", "", `As whom we sign in to Redis; "" is its default user. Defaults to "".`),
		secret(&c.Redis.Password, maskAll, "redis.password", `With which password; best given as ONSALE_REDIS_PASSWORD. Defaults to "".`),
		text(&c.Redis.SentinelMaster, "redis.sentinel_master", "", `What the sentinels call the primary; then redis.addresses are theirs. "" is no sentinels. Defaults to "".`),
		secret(&c.Redis.SentinelPassword, maskAll, "redis.sentinel_password", `The sentinels' password, where they have one; best given as ONSALE_REDIS_SENTINEL_PASSWORD. Defaults to "".`),
		yesNo(&c.Redis.Cluster, "redis.cluster", "Whether it is a Redis Cluster. Defaults to false."),
		yesNo(&c.Redis.TLS, "redis.tls", "Whether connections to Redis (and its sentinels) are encrypted; certificates are checked. Defaults to false."),

		secret(&c.MasterKey, maskAll, "master_key",
			`Opens the keys in the database, onsale-master-1: and 64 hex digits; best given as ONSALE_MASTER_KEY. "" is master_key_file. Defaults to "".`),
		text(&c.MasterKeyFile, "master_key_file", "",
			`File with the master key, readable by this program's user alone; "" is a file in data, made where missing (not with PostgreSQL: every node needs the same). Defaults to "".`),
		{key: "issuers", node: c.readIssuers, get: func() any { return c.Issuers }, set: onlyEmpty,
			doc: `Whose tokens say who a customer is; only in a file. Each has name (iss), audience (aud), algorithm (EdDSA, ES256 or RS256: the only one), one of jwks_url, jwks_file, pem_file, and may have typ ("JWT"), leeway ("0s", at most 5m) and trust_email (false; true: its verified addresses are those who sign in with a code). Defaults to none.`},
		{key: "sign_in_providers", node: c.readProviders, get: func() any { return c.Providers }, set: onlyEmpty,
			doc: `OpenID Connect providers where people may sign in; only in a file. Each has name (in /v1/sign-in/NAME/start), issuer (https://…), client_id, and may have client_secret_file, algorithm ("RS256") and trust_email (false). Needs public_url. Defaults to none.`},
		yesNo(&c.Throwaway, "throwaway_issuer",
			"Also takes tokens that `onsale token` makes for anybody; always so with demo. Defaults to false."),

		text(&c.Payment.Provider, "payment.provider", "", `Who moves the money: "stripe", "sandbox" (only with demo) or "none" (only free events can be sold). "" is sandbox with demo, else none. Defaults to "".`, "", "stripe", "sandbox", "none"),
		text(&c.Payment.Mode, "payment.mode", "authorize",
			`"authorize" reserves money and takes it once the tickets are made, where the provider can; "charge" takes it at once. Defaults to "authorize".`, "authorize", "charge"),
		length(&c.Payment.AttemptTimeout, time.Second, 4*time.Minute, "payment.attempt_timeout", "30s",
			`How long one booking talks with the provider, 1s–4m; afterwards it goes on in the background. Defaults to "30s".`),
		length(&c.Payment.RecoverAfter, time.Second, time.Hour, "payment.recover_after", "10s",
			`How long a pending order is left alone before the provider is asked about it, 1s–1h. Defaults to "10s".`),
		secret(&c.Payment.Stripe.SecretKey, maskAll, "payment.stripe.secret_key",
			`The account's key, sk_live_… (with demo sk_test_…), or a restricted one; best given as ONSALE_PAYMENT_STRIPE_SECRET_KEY. Defaults to "".`),
		secret(&c.Payment.Stripe.WebhookSecrets, maskAll, "payment.stripe.webhook_secrets",
			`What signs Stripe's webhooks to /v1/payments/stripe/webhook, whsec_…; while one is being changed both, with a comma between. Defaults to "".`),
		text(&c.Payment.Stripe.Account, "payment.stripe.account", "", `The connected account (acct_…) for which a platform's key acts; "" is the key's own. Defaults to "".`),
		yesNo(&c.Payment.Stripe.SharedAccount, "payment.stripe.shared_account", "Other programs take money on the account too: payments that name no order of ours are then no alert. Defaults to false."),
		text(&c.Payment.Stripe.House, "payment.stripe.house", "", `Tells the installations of this program apart that share one account, by letters, digits, - and _; it must not change while orders are open. Defaults to "".`),
		text(&c.Payment.Stripe.ReturnURL, "payment.stripe.return_url", "", `Where a bank sends customers back after 3-D Secure, https; {order} in it is the booking's number. "" is nowhere: the page's own script goes through it. Defaults to "".`),
		text(&c.Payment.Sandbox.Listen, "payment.sandbox.listen", "127.0.0.1:0",
			`Where the sandbox provider listens, host:port on a loopback interface; port 0 is a free one. Defaults to "127.0.0.1:0".`),
		{key: "payment.sandbox.seed", fallback: "1", get: func() any { return c.Payment.Sandbox.Seed },
			doc: "Which orders meet which fault; the same seed, the same faults. Defaults to 1.",
			set: func(text string) (err error) {
				if c.Payment.Sandbox.Seed, err = strconv.ParseUint(text, 10, 64); err != nil {
					return fmt.Errorf("must be a whole number from 0 on")
				}
				return nil
			}},
		{key: "payment.sandbox.faults", node: c.readFaults, get: func() any { return c.Payment.Sandbox.Faults }, set: c.setFaults,
			doc: `How often each fault meets an order, share of orders 0–1 by name, "declined=0.1,lost_answer=0.02" or as keys in a file; "" is never. Defaults to "".`},

		text(&c.Mail.Name, "mail.name", "Onsale", `The shop's name in mails. Defaults to "Onsale".`),
		text(&c.Mail.From, "mail.from", "", `Who mails are from, Tickets <tickets@tickets.example>. Needed with mail.smtp.host. Defaults to "".`),
		text(&c.Mail.ReplyTo, "mail.reply_to", "", `Where answers to mails go; "" is mail.from. Defaults to "".`),
		text(&c.Mail.SMTP.Host, "mail.smtp.host", "", `The mail server; "" sends no mail (with demo into /dev/mailbox): nobody can then sign in with a code. Defaults to "".`),
		number(&c.Mail.SMTP.Port, 1, 65535, "mail.smtp.port", 587, "Its port, 1–65535. Defaults to 587."),
		text(&c.Mail.SMTP.Encryption, "mail.smtp.encryption", "", `"starttls" (port 587), "tls" (port 465) or "none" (only to a loopback address); "" is starttls, to a loopback address none. Defaults to "".`, "", "starttls", "tls", "none"),
		text(&c.Mail.SMTP.User, "mail.smtp.user", "", `Whom we sign in as; "" does not sign in. Defaults to "".`),
		secret(&c.Mail.SMTP.Password, maskAll, "mail.smtp.password", `With which password; best given as ONSALE_MAIL_SMTP_PASSWORD. Defaults to "".`),

		networks(&c.WebhooksTo, "webhooks.allow",
			`Private networks or addresses to which webhooks may go all the same, "10.0.0.0/8"; "" is public addresses alone. Defaults to "".`),

		number(&c.Limits.LedgerQueueMax, 1024, 1_000_000, "limits.ledger_queue_max", 16_384,
			"Commands that may wait for the ledger, 1024–1000000; more are told to come back. Defaults to 16384."),
		number(&c.Limits.PaymentTalksMax, 1, 1_000_000, "limits.payment_talks_max", 4096,
			"Bookings that may talk with the payment provider at once, 1–1000000; more are told to come back. Defaults to 4096."),
		number(&c.Limits.SubscribersMax, 1, 10_000_000, "limits.subscribers_max", 20_000,
			"Seat streams that this node serves at once, 1–10000000. Defaults to 20000."),
		number(&c.Limits.RateCustomer, 0, guard.RateMax, "limits.rate_customer", 5,
			"Requests a second of one customer, 0–1000000; 0 is no limit. Defaults to 5."),
		number(&c.Limits.RateSale, 0, guard.RateMax, "limits.rate_sale", 3,
			"Of these holds and bookings, 0–1000000; 0 is no limit. Defaults to 3."),
		number(&c.Limits.RateQueue, 0, guard.RateMax, "limits.rate_queue", 3,
			"Of these joining a line, entering and leaving, 0–1000000; 0 is no limit. Defaults to 3."),
		number(&c.Limits.RateSignIn, 0, guard.RateMax, "limits.rate_sign_in", 5,
			"Of one customer's or address's those that sign in, 0–1000000; 0 is no limit. Defaults to 5."),
		number(&c.Limits.RateCheck, 0, guard.RateMax, "limits.rate_check", 5,
			"Of one customer's or address's those that ask for a proof of work or a picture, 0–1000000; 0 is no limit. Defaults to 5."),
		number(&c.Limits.RateEvent, 0, guard.RateMax, "limits.rate_event", 4000,
			"Requests a second of one kind that one event may have whatever the others do, on this node, 0–1000000; 0 is no such share. Defaults to 4000."),
		number(&c.Limits.RateStaff, 0, guard.RateMax, "limits.rate_staff", 50,
			"Requests a second of one customer who works for an organizer, at that work, 0–1000000; 0 is no limit. Defaults to 50."),
		number(&c.Limits.RateAddress, 0, guard.RateMax, "limits.rate_address", 20,
			"Requests a second of one address (IPv6: of one /64) by people who are not signed in, 0–1000000; 0 is no limit. Defaults to 20."),
		number(&c.Limits.RateSite, 0, guard.RateMax, "limits.rate_site", 20_000,
			"Requests a second of all together on this node, 0–1000000; 0 is no limit. Defaults to 20000."),
		length(&c.Limits.RateBurst, 100*time.Millisecond, guard.BurstMax, "limits.rate_burst", "2s",
			`How long a silence may be made up for at once, 100ms–1m: each rate may be exceeded that far. Defaults to "2s".`),
		number(&c.Limits.RateKeysMax, 1000, guard.KeysMax, "limits.rate_keys_max", guard.KeysDefault,
			"Customers, and addresses, that the rates remember, 1000–10000000; those not heard of for longest are forgotten. Defaults to 200000."),

		length(&c.Timeouts.Read, time.Second, 10*time.Minute, "timeouts.read", "15s", `How long a request may take to arrive, 1s–10m. Defaults to "15s".`),
		length(&c.Timeouts.Idle, time.Second, time.Hour, "timeouts.idle", "1m", `How long an idle connection is kept, 1s–1h. Defaults to "1m".`),
		text(&c.Log.Level, "log.level", "info", `What is logged at least: "debug", "info", "warn" or "error". Defaults to "info".`, "debug", "info", "warn", "error"),
		text(&c.Log.Format, "log.format", "text", `"text" for people, "json" for machines. Defaults to "text".`, "text", "json"),
		length(&c.ShutdownGrace, 0, 10*time.Minute, "shutdown_grace", "15s", `How long requests under way may go on when the program is told to stop, 0s–10m. Defaults to "15s".`),
	}
	return append(rows, c.roomSettings()...)
}

// The kinds of rows.

func text(into *string, key, fallback, doc string, choices ...string) setting {
	return setting{key: key, doc: doc, fallback: fallback, get: func() any { return *into }, set: func(text string) error {
		if len(choices) > 0 && !slices.Contains(choices, text) {
			return fmt.Errorf("must be one of %q", choices)
		}
		if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return fmt.Errorf("must not have control characters")
		}
		*into = text
		return nil
	}}
}

func secret(into *string, mask func(string) string, key, doc string) setting {
	s := text(into, key, "", doc)
	s.mask = mask
	return s
}

func yesNo(into *bool, key, doc string) setting {
	return setting{key: key, doc: doc, fallback: "false", get: func() any { return *into }, set: func(text string) error {
		switch text {
		case "true", "false":
			*into = text == "true"
			return nil
		}
		return fmt.Errorf("must be true or false")
	}}
}

func number(into *int, least, most int, key string, fallback int, doc string) setting {
	return setting{key: key, doc: doc, fallback: strconv.Itoa(fallback), get: func() any { return *into }, set: func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return fmt.Errorf("must be a whole number from %d to %d", least, most)
		}
		*into = n
		return nil
	}}
}

func length(into *time.Duration, least, most time.Duration, key, fallback, doc string) setting {
	return setting{key: key, doc: doc, fallback: fallback, get: func() any { return *into }, set: func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d < least || d > most {
			return fmt.Errorf("must be a length of time from %s to %s, such as 90s or 2m", short(least), short(most))
		}
		*into = d
		return nil
	}}
}

// networks reads a list of networks or single addresses, with commas between them.
func networks(into *[]netip.Prefix, key, doc string) setting {
	return setting{key: key, doc: doc, get: func() any {
		var all []string
		for _, p := range *into {
			all = append(all, p.String())
		}
		return strings.Join(all, ", ")
	}, set: func(text string) error {
		*into = nil
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			p, err := netip.ParsePrefix(part)
			if err != nil {
				var a netip.Addr
				if a, err = netip.ParseAddr(part); err == nil {
					p, err = a.Prefix(a.BitLen())
				}
			}
			if err != nil || p.Addr().Zone() != "" {
				return fmt.Errorf("has %.60q, which is no network such as 10.0.0.0/8 and no address", part)
			}
			*into = append(*into, p.Masked())
		}
		if len(*into) > networksMax {
			return fmt.Errorf("has %d networks; at most %d", len(*into), networksMax)
		}
		return nil
	}}
}

func onlyEmpty(text string) error {
	if text != "" {
		return fmt.Errorf("cannot be given here: write it into a file, --config FILE")
	}
	return nil
}

// setFaults reads "declined=0.1,lost_answer=0.02".
func (c *Config) setFaults(text string) error {
	c.Payment.Sandbox.Faults = nil
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, rate, _ := strings.Cut(part, "=")
		if err := c.addFault(strings.TrimSpace(name), strings.TrimSpace(rate)); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) addFault(name, text string) error {
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(rate) || rate < 0 || rate > 1 {
		return fmt.Errorf("the rate of %.40q must be a number from 0 to 1", name)
	}
	if slices.ContainsFunc(c.Payment.Sandbox.Faults, func(f FaultRate) bool { return f.Fault == name }) {
		return fmt.Errorf("has %.40q twice", name)
	}
	c.Payment.Sandbox.Faults = append(c.Payment.Sandbox.Faults, FaultRate{Fault: name, Rate: rate})
	return nil
}

// maskAll hides a secret, but not whether there is one.
func maskAll(text string) string {
	if text == "" {
		return ""
	}
	return "***"
}

// maskURL hides what is secret in a URL, and shows where it leads.
func maskURL(text string) string {
	u, err := url.Parse(text)
	if text == "" || err != nil || u.Host == "" {
		return maskAll(text)
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	user := ""
	if u.User != nil {
		user = u.User.Username() + ":***@"
	}
	query := ""
	if u.RawQuery != "" {
		query = "?***" // a password may be there, too
	}
	return strings.Replace(shown.String(), "://", "://"+user, 1) + query
}

// short is a duration without the zeros that String adds.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
