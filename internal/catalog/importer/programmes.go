package importer

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"onsale/internal/catalog"
)

// nobody are words that stand for performers without naming one.
var nobody = regexp.MustCompile(`^(众多|多位|待定|暂无|群星|未知|various|tba|tbd)`)

// programmes reads a list of programmes: title, actor, place, show_times, tiers.
func (c *converter) programmes(value any) {
	for i, one := range list(value) {
		path := fmt.Sprintf("[%d]", i)
		p := object(one)
		if p == nil || !has(p, "title") && !has(p, "show_times") {
			c.skip(path, "is not a programme: it has no title")
			continue
		}
		d := c.draft(path)
		if d == nil {
			return
		}
		c.programme(d, p)
		c.done(d)
	}
}

func (c *converter) programme(d *Draft, p map[string]any) {
	d.ID = str(p["id"])
	d.Show.Title = str(p["title"])
	if key := "programme-" + d.ID; d.ID != "" && catalog.CheckKey(key) == "" {
		d.Show.Key = key
	}
	d.Show.Performers = c.actors(d, str(p["actor"]))
	d.Venue.Name = str(p["place"])
	d.Venue.Zone = c.o.Zone
	d.Currency = "CNY" // prices are in price_yuan
	c.programmePlace(d)
	if d.Venue.Zone == "" {
		d.ask(d.Path+".show_times", "venue.zone", "In which zone are the times? The data does not say it; lists of this kind are in China's.", "Asia/Shanghai")
	}
	for i, at := range list(p["show_times"]) {
		path, field := fmt.Sprintf("%s.show_times[%d]", d.Path, i), fmt.Sprintf("performances[%d].starts", i)
		d.Performances = append(d.Performances, Performance{Starts: d.when(path, field, str(at))})
	}
	for i, one := range d.atMost(d.Path+".tiers", list(p["tiers"])) {
		c.programmeTier(d, i, object(one))
	}
	d.PerHold = c.count(d, "per_order_limit", p["per_order_limit"], "seats_per_hold_max", "How many places may one order have?")
	d.PerCustomer = c.count(d, "per_account_limit", p["per_account_limit"], "limits.event", "How many places may one customer buy?")
	if p["real_name"] == true {
		d.Documents = true
		d.ask(d.Path+".real_name", "limits.document", "How many places may be bought for one identity document? Buyers are named, and the data has no such limit.", "1")
	}
	if refund := str(p["permit_refund"]); refund != "" && refund != "0" {
		d.ask(d.Path+".permit_refund", "refunds", fmt.Sprintf("Until when may tickets be given back, and for what fee? The data says only %s.", quoted(refund)))
	}
}

// programmePlace asks for city and country. A name of a city in the house's name suggests it, and no more.
func (c *converter) programmePlace(d *Draft) {
	d.Venue.City, d.Venue.Country = c.o.City, c.o.Country
	if d.Venue.City == "" {
		var options []string
		for _, city := range []string{"北京", "上海", "广州", "深圳", "成都", "杭州", "武汉", "南京", "西安", "重庆", "天津", "苏州", "长沙"} {
			if strings.Contains(d.Venue.Name, city) {
				options = append(options, city)
			}
		}
		d.ask(d.Path+".place", "venue.city", "In which city is the house? The data has only its name.", options...)
	}
	if d.Venue.Country == "" {
		d.ask(d.Path+".place", "venue.country", "In which country is the house? Two letters; prices are in yuan.", "CN")
	}
}

func (c *converter) actors(d *Draft, text string) []string {
	if text == "" {
		return nil
	}
	if nobody.MatchString(strings.ToLower(text)) {
		d.ask(d.Path+".actor", "show.performers", fmt.Sprintf("Who plays? The data says %s, which names nobody; the list may stay empty.", quoted(text)))
		return nil
	}
	var names []string
	for _, name := range regexp.MustCompile(`[、，;；/&＆]`).Split(text, -1) {
		names = append(names, line(name))
	}
	// A name in Latin letters may have such a character in it.
	if strings.ContainsAny(text, "&＆/") && strings.ContainsFunc(text, func(c rune) bool { return c >= 'A' && c <= 'z' }) {
		d.ask(d.Path+".actor", "show.performers", "Is this one name or several?", append([]string{text}, names...)...)
		return nil
	}
	return names
}

func (c *converter) programmeTier(d *Draft, i int, t map[string]any) {
	path, field := fmt.Sprintf("%s.tiers[%d]", d.Path, i), fmt.Sprintf("tiers[%d]", i)
	tier := Tier{Category: str(t["name"]), Face: str(t["price_yuan"])}
	if tier.Category == "" {
		d.ask(path, field+".category", "Which category of the plan has this price?")
	}
	for k := range d.Tiers {
		if d.Tiers[k].Category == tier.Category && tier.Category != "" {
			d.ask(path, field+".category", fmt.Sprintf("Which category is meant? %s is there twice.", quoted(tier.Category)))
			tier.Category = ""
		}
	}
	tier.Face = d.price(path, field+".face", tier.Face)
	total, err := strconv.Atoi(str(t["total"]))
	switch {
	case err == nil && total > 0 && total <= catalog.PlacesMax:
		tier.Total = total
	case err == nil && total == 0:
		d.ask(path+".total", "quotas", fmt.Sprintf("How many places at %s are for sale? The data says 0, which may mean none or no limit: leave the tier out, or give a quota.", quoted(str(t["name"]))))
	case has(t, "total"):
		d.ask(path+".total", "quotas", fmt.Sprintf("How many places at %s are for sale? The data says %s.", quoted(str(t["name"])), quoted(fmt.Sprint(t["total"]))))
	}
	d.Tiers = append(d.Tiers, tier)
}

// count is a limit of the data, 0 where it has none; what is no number of places is asked for.
func (c *converter) count(d *Draft, key string, value any, field, text string) int {
	if value == nil {
		return 0
	}
	n, err := strconv.Atoi(str(value))
	if err != nil || n < 1 || n > catalog.LimitMax || field == "seats_per_hold_max" && n > 500 {
		d.ask(d.Path+"."+key, field, fmt.Sprintf("%s The data says %s.", text, quoted(fmt.Sprint(value))))
		return 0
	}
	return n
}

var decimal = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,3})?$`)

// price is a price of the data, or "" and a question.
func (d *Draft) price(path, field, text string) string {
	if decimal.MatchString(text) {
		return text
	}
	what := "The data has none."
	if text != "" {
		what = fmt.Sprintf("The data says %s.", quoted(text))
	}
	d.ask(path, field, "What is the price? "+what+" A number such as 49.50, without the currency.")
	return ""
}
