package mailbox

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"onsale/internal/outbox/mail"
)

func get(b *Mailbox, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	b.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func put(t *testing.T, b *Mailbox, m mail.Mail) {
	t.Helper()
	if err := b.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

func letter(i int) mail.Mail {
	return mail.Mail{
		ID: fmt.Sprintf("m%d@example.com", i), To: mail.Address{Name: "<b>Ada</b>", Email: "ada@example.com"}, Subject: fmt.Sprintf("Mail <%d>", i),
		HTML: `<p>hello <img src="cid:a"></p>`, Text: "hello\n",
		Attachments: []mail.Attachment{{Name: "a.png", Type: "image/png", ContentID: "a", Data: []byte("png")}, {Name: "x\"\r\n.html", Type: "text/html", Data: []byte("<script>")}},
	}
}

func TestWhatItShows(t *testing.T) {
	b := New("/dev/mailbox/", nil)
	if w := get(b, "/dev/mailbox"); w.Code != 200 || !strings.Contains(w.Body.String(), "Nothing yet") {
		t.Error(w.Body)
	}
	put(t, b, letter(1))
	put(t, b, letter(2))
	list := get(b, "/dev/mailbox").Body.String()
	if !strings.Contains(list, "Mail &lt;2&gt;") || strings.Index(list, "&lt;2&gt;") > strings.Index(list, "&lt;1&gt;") {
		t.Error("not newest first, or not escaped:", list)
	}
	if w := get(b, "/dev/mailbox?to=ADA@example.com"); !strings.Contains(w.Body.String(), "&lt;1&gt;") {
		t.Error(w.Body)
	}
	if w := get(b, "/dev/mailbox?to=bob@example.com"); strings.Contains(w.Body.String(), "&lt;1&gt;") {
		t.Error(w.Body)
	}
	one := get(b, "/dev/mailbox/2").Body.String()
	if strings.Contains(one, "<b>Ada") || !strings.Contains(one, `src="/dev/mailbox/2/html"`) || !strings.Contains(one, "/files/1") {
		t.Error(one)
	}
	html := get(b, "/dev/mailbox/2/html")
	if !strings.Contains(html.Body.String(), "data:image/png;base64,cG5n") || !strings.HasPrefix(html.Header().Get("Content-Security-Policy"), "sandbox") {
		t.Error(html.Header(), html.Body)
	}
	if w := get(b, "/dev/mailbox/2/text"); w.Body.String() != "hello\n" || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Error(w.Body)
	}
	file := get(b, "/dev/mailbox/2/files/1")
	if file.Body.String() != "<script>" || !strings.HasPrefix(file.Header().Get("Content-Disposition"), "attachment") || !strings.HasPrefix(file.Header().Get("Content-Security-Policy"), "sandbox") {
		t.Error(file.Header())
	}
	for _, path := range []string{"/3", "/0", "/-1", "/x", "/2/", "/2/nothing", "/2/files/2", "/2/files/-1", "/2/files/x", "/2/html/x"} {
		if w := get(b, "/dev/mailbox"+path); w.Code != http.StatusNotFound && path != "/2/" {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/dev/mailbox", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Error(w.Code)
	}
}

func TestItIsBounded(t *testing.T) {
	b := New("/dev/mailbox", nil)
	for i := range MailsMax + 3 {
		put(t, b, letter(i))
	}
	all := b.Mails("")
	if len(all) != MailsMax || all[0].ID != letter(MailsMax+2).ID || all[MailsMax-1].ID != letter(3).ID {
		t.Errorf("%d mails from %s to %s", len(all), all[0].ID, all[len(all)-1].ID)
	}
	big := letter(9999)
	big.HTML = strings.Repeat("x", BytesMax/2)
	put(t, b, big)
	big.ID = "another"
	put(t, b, big)
	if all = b.Mails(""); len(all) != 1 || b.bytes > BytesMax {
		t.Errorf("%d mails of %d bytes", len(all), b.bytes)
	}
}

func TestTheSameMailIsOnce(t *testing.T) {
	b := New("/dev/mailbox", nil)
	put(t, b, letter(1))
	put(t, b, letter(2))
	put(t, b, letter(1))
	if all := b.Mails(""); len(all) != 2 || all[0].ID != letter(1).ID {
		t.Errorf("%d mails", len(all))
	}
}

// A program reads the same list.
func TestPrograms(t *testing.T) {
	b := New("/dev/mailbox", nil)
	for i := range 3 {
		put(t, b, letter(i))
	}
	for to, want := range map[string]int{"": 3, "ADA@example.com": 3, "bob@example.com": 0} {
		r := httptest.NewRequest(http.MethodGet, "/dev/mailbox?to="+to, nil)
		r.Header.Set("Accept", "application/json")
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		var all []Letter
		if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil || all == nil || len(all) != want {
			t.Fatalf("to %q: %s, %v", to, w.Body, err)
		}
		if want > 0 && (all[0].Subject != "Mail <2>" || all[0].To != "ada@example.com" || all[0].Text != "hello\n" || all[0].Number != 3) {
			t.Errorf("%+v", all[0])
		}
	}
}
