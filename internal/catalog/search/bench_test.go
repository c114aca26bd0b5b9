package search

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"onsale/internal/catalog"
)

// programme makes up a catalog with the traits of real ones: tours of one name in many cities, Chinese titles in their
// quotes, English ones with accents, a few words that very many events share.
func programme(count int, seed uint64) []catalog.Listing {
	r := rand.New(rand.NewPCG(seed, 1))
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	all := make([]catalog.Listing, 0, count)
	for len(all) < count {
		chinese := r.IntN(2) == 0
		title, performers := englishTitle(r), []string{englishName(r)}
		if chinese {
			title, performers = chineseTitle(r)
		}
		for range 1 + r.IntN(12) { // a tour
			if len(all) == count {
				break
			}
			c := pick([]string{"Hamburg|Europe/Berlin", "London|Europe/London", "München|Europe/Berlin", "Paris|Europe/Paris", "New York|America/New_York"})
			house := pick([]string{"Arena", "Stadium", "Hall", "Theatre", "Olympiahalle", "Wembley Stadium", "Opera House"})
			if chinese {
				c = pick([]string{"北京|Asia/Shanghai", "上海|Asia/Shanghai", "深圳|Asia/Shanghai", "广州|Asia/Shanghai", "成都|Asia/Shanghai"})
				house = pick([]string{"国家体育馆", "大剧院", "工人体育场", "MAO House", "音乐厅", "人民剧场", "星空LIVE·场馆"})
			}
			city, zone, _ := strings.Cut(c, "|")
			l := listing(fmt.Sprint("e", len(all)), title, start.Add(time.Duration(r.IntN(365*24*4))*15*time.Minute))
			l.Event.Performers = performers
			l.Event.Venue = catalog.Venue{Name: house, City: city, Country: "XX", Zone: zone}
			l.Show.Description = description(r, chinese)
			l.Event.Organizer = lastID % 50
			all = append(all, l)
		}
	}
	return all
}

const surnames = "赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨朱秦尤许何吕施张孔曹严华金魏陶姜"
const given = "一二子文雨晨浩然思远星河梦青云海山林月明清风雪冰轩宇航佳怡欣欣伟芳娜敏静丽强磊军洋"

func chineseName(r *rand.Rand) string {
	s, g := []rune(surnames), []rune(given)
	name := string(s[r.IntN(len(s))]) + string(g[r.IntN(len(g))])
	if r.IntN(3) > 0 {
		name += string(g[r.IntN(len(g))])
	}
	return name
}

func chineseTitle(r *rand.Rand) (string, []string) {
	name, g := chineseName(r), []rune(given)
	var theme strings.Builder
	for range 2 + r.IntN(5) {
		theme.WriteRune(g[r.IntN(len(g))])
	}
	kinds := []string{"%s「%s」巡回演唱会", "%s“%s”世界巡回演唱会", "话剧《%[2]s》", "%s《%s》音乐会", "【%[2]s】%[1]s致敬经典演唱会", "大型舞台剧《%[2]s》", "%s LIVE %s音乐节"}
	return fmt.Sprintf(kinds[r.IntN(len(kinds))], name, theme.String()), []string{name}
}

func syllables(r *rand.Rand, count int) string {
	var b strings.Builder
	for range count {
		b.WriteString([]string{"ra", "dio", "ka", "lu", "mé", "ton", "bey", "sha", "wil", "ner", "ö", "sti", "gra", "ven", "mor", "ali"}[r.IntN(16)])
	}
	return b.String()
}

func englishName(r *rand.Rand) string {
	name := syllables(r, 2+r.IntN(2))
	first := []rune(name)
	return string(unicode.ToUpper(first[0])) + string(first[1:]) + " " + syllables(r, 2)
}

func englishTitle(r *rand.Rand) string {
	kinds := []string{"%s Live", "%s – World Tour 2027", "An Evening with %s", "The %s Festival", "%s in Concert", "%s & Friends"}
	return fmt.Sprintf(kinds[r.IntN(len(kinds))], englishName(r))
}

func description(r *rand.Rand, chinese bool) string {
	var b strings.Builder
	for range 15 + r.IntN(30) {
		if chinese {
			b.WriteString(chineseName(r))
			if r.IntN(5) == 0 {
				b.WriteString("，现场演出")
			}
		} else {
			b.WriteString(syllables(r, 1+r.IntN(3)) + " ")
		}
	}
	return b.String()
}

// asked are queries as people send them: names, a name with a city, words that thousands of events share, typos, filters.
func asked(all []catalog.Listing, count int, seed uint64) []catalog.Query {
	r := rand.New(rand.NewPCG(seed, 2))
	queries := make([]catalog.Query, 0, count)
	for len(queries) < count {
		l := all[r.IntN(len(all))]
		q := catalog.Query{Text: l.Event.Title}
		switch r.IntN(10) {
		case 0, 1:
			q.Text = l.Event.Performers[0]
		case 2:
			q.Text = l.Event.Performers[0] + l.Event.Venue.City
		case 3:
			q.Text = l.Event.Performers[0] + " " + l.Event.Venue.Name
		case 4:
			q.Text = []string{"演唱会", "音乐会", "live", "tour", "concert", "世界巡回"}[r.IntN(6)]
		case 5:
			q.Text = string([]rune(given)[r.IntN(len([]rune(given)))])
		case 6:
			q.Text, q.City = "演唱会", "北京"
		case 7:
			q.Text, q.From = []string{"stadium", "stadum", "wembly", "olympiahale"}[r.IntN(4)], start.AddDate(0, r.IntN(12), 0)
			q.To = q.From.AddDate(0, 1, 0)
		case 8:
			name := []rune(l.Event.Performers[0])
			q.Text = string(name[:(len(name)+1)/2])
		}
		queries = append(queries, q)
	}
	return queries
}

// BenchmarkSearch reports how long searches take at 20,000 events, the 99th percentile too: by the clock, and in processor
// time, which other work on the machine does not change. Run with -benchtime 5000x or more.
func BenchmarkSearch(b *testing.B) {
	all := programme(20_000, 1)
	began := time.Now()
	w := newWorld(b, Options{}, all...)
	built := time.Since(began)
	queries := asked(all, 1_000, 1)
	wall, cpu := make([]time.Duration, 0, b.N), make([]time.Duration, 0, b.N)
	found := 0
	runtime.LockOSThread() // for threadTime
	defer runtime.UnlockOSThread()
	for i := 0; b.Loop(); i++ {
		began, used := time.Now(), threadTime()
		p, err := w.Search(context.Background(), queries[i%len(queries)])
		wall, cpu = append(wall, time.Since(began)), append(cpu, threadTime()-used)
		if err != nil {
			b.Fatal(err)
		}
		found += len(p.Events)
	}
	for name, took := range map[string][]time.Duration{"": wall, "cpu-": cpu} {
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-"+name+"ms")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-"+name+"ms")
	}
	b.ReportMetric(built.Seconds(), "build-s")
	b.ReportMetric(float64(found)/float64(len(wall)), "events/page")
}
