package page

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"golang.org/x/image/font/gofont/gomono"

	"tare/desk/claims"
	"tare/desk/data"
	"tare/internal/require"
)

// need skips a test that lacks a component, by its name; where everything is required it fails.
func need(t *testing.T, ok bool, what string) {
	t.Helper()
	require.That(t, ok, what)
}

func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	need(t, false, "Chromium (apt install chromium)")
	return ""
}

// tab is a browser with one page open at a time, and all that the page asked for and complained of.
type tab struct {
	ctx context.Context

	mu         sync.Mutex
	requests   []string
	complaints []string
}

// onlyFont makes a folder in which fontconfig finds one font and no other, and gives what tells a browser to use it: so that
// a test sees a page as a reader does who has none of the fonts that a page is laid out for.
func onlyFont(t *testing.T, ttf []byte) (env string) {
	t.Helper()
	dir := t.TempDir()
	conf := fmt.Sprintf("<?xml version=\"1.0\"?>\n<fontconfig><dir>%[1]s/fonts</dir><cachedir>%[1]s/cache</cachedir></fontconfig>\n", dir)
	for name, data := range map[string][]byte{"fonts/only.ttf": ttf, "fonts.conf": []byte(conf)} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return "FONTCONFIG_FILE=" + filepath.Join(dir, "fonts.conf")
}

// start starts a browser with these variables in its environment.
func start(t *testing.T, env ...string) *tab {
	t.Helper()
	path := browser(t)
	profile, err := os.MkdirTemp("", "tare-report-browser-")
	if err != nil {
		t.Fatal(err)
	}
	opts := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.Env(env...),
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
	}
	for _, f := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-default-apps", "disable-extensions", "disable-dev-shm-usage", "hide-scrollbars"} {
		opts = append(opts, chromedp.Flag(f, true))
	}
	bounded, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	alloc, cancelAlloc := chromedp.NewExecAllocator(bounded, opts...)
	ctx, cancelTab := chromedp.NewContext(alloc)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil && bounded.Err() == nil {
			t.Errorf("closing the browser: %v", err)
		}
		cancelTab()
		cancelAlloc()
		cancel()
		if err := os.RemoveAll(profile); err != nil {
			t.Errorf("removing the browser's profile: %v", err)
		}
	})
	tb := &tab{ctx: ctx}
	if err := chromedp.Listen(ctx, tb.hear); err != nil {
		t.Fatalf("starting %s: %v", path, err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, runtime.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	return tb
}

// open shows a page at a width and in a colour scheme, all that is folded away unfolded.
func (tb *tab) open(t *testing.T, page string, width int64, scheme string) {
	t.Helper()
	abs, err := filepath.Abs(page)
	if err != nil {
		t.Fatal(err)
	}
	tb.mu.Lock()
	tb.requests, tb.complaints = nil, nil
	tb.mu.Unlock()
	tb.show(t, width, scheme)
	if err := chromedp.Do(tb.ctx, chromedp.Navigate("file://"+abs)); err != nil {
		t.Fatalf("opening %s: %v", abs, err)
	}
	ask[string](t, tb, `document.querySelectorAll('details').forEach(d => d.open = true), ''`)
}

func (tb *tab) hear(ev any) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	switch e := ev.(type) {
	case *network.EventRequestWillBeSent:
		tb.requests = append(tb.requests, e.Request.URL)
	case *log.EventEntryAdded:
		tb.complaints = append(tb.complaints, fmt.Sprintf("%s: %s", e.Entry.Level, e.Entry.Text))
	case *runtime.EventConsoleAPICalled:
		tb.complaints = append(tb.complaints, fmt.Sprintf("console: %s", e.Type))
	case *runtime.EventExceptionThrown:
		tb.complaints = append(tb.complaints, "exception: "+e.ExceptionDetails.Text)
	}
}

// show sets the width of the window and the colour scheme.
func (tb *tab) show(t *testing.T, width int64, scheme string) {
	t.Helper()
	if err := chromedp.Do(tb.ctx, chromedp.EmulateViewport(width, 800, func(p *emulation.SetDeviceMetricsOverrideParams, _ *emulation.SetTouchEmulationEnabledParams) {
		p.Mobile = width < 600
		p.DeviceScaleFactor = 1
	})); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(tb.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	}); err != nil {
		t.Fatal(err)
	}
}

func ask[T any](t *testing.T, tb *tab, script string) T {
	t.Helper()
	v, err := chromedp.Run(tb.ctx, chromedp.Evaluate[T](script))
	if err != nil {
		t.Fatalf("asking the page: %v", err)
	}
	return v
}

// shoot keeps a screenshot where somebody wants to look: TARE_SHOTS names a folder.
func (tb *tab) shoot(t *testing.T, name string) {
	t.Helper()
	dir := os.Getenv("TARE_SHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(tb.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

// contrastScript lists texts whose contrast with what is behind them is below 4.5 to 1 (WCAG AA).
const contrastScript = `(() => {
  const parse = c => { const m = c.match(/[\d.]+/g).map(Number); return {r: m[0], g: m[1], b: m[2], a: m.length > 3 ? m[3] : 1}; };
  const lum = c => { const f = v => { v /= 255; return v <= .03928 ? v / 12.92 : Math.pow((v + .055) / 1.055, 2.4); }; return .2126 * f(c.r) + .7152 * f(c.g) + .0722 * f(c.b); };
  const known = new Map();
  const behind = el => { if (!el) return {r: 255, g: 255, b: 255}; let b = known.get(el); if (!b) { const c = parse(getComputedStyle(el).backgroundColor); b = c.a === 1 ? c : behind(el.parentElement); known.set(el, b); } return b; };
  const bad = []; let n = 0;
  const w = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (w.nextNode()) {
    const el = w.currentNode.parentElement, text = w.currentNode.textContent.trim();
    if (!text || el.closest('title,desc,style') || !el.getClientRects().length) continue;
    const s = getComputedStyle(el), c = parse(el.closest('svg') ? s.fill : s.color), b = behind(el);
    const [hi, lo] = [lum(c), lum(b)].sort((x, y) => y - x);
    n++;
    if ((hi + .05) / (lo + .05) < 4.5) bad.push(text.slice(0, 40) + ': ' + ((hi + .05) / (lo + .05)).toFixed(2));
  }
  if (n < 50) bad.push('only ' + n + ' texts were seen');
  return bad;
})()`

// figureScript lists what is wrong with the figures that are shown: no size, texts outside, texts on each other.
const figureScript = `(() => {
  const bad = []; let n = 0;
  for (const svg of document.querySelectorAll('svg')) {
    if (getComputedStyle(svg).display === 'none') continue;
    n++;
    const id = svg.getAttribute('aria-labelledby'), box = svg.getBoundingClientRect();
    if (box.width < 50 || box.height < 50) bad.push(id + ' is ' + box.width + ' by ' + box.height);
    if (!svg.querySelector('title').textContent || !svg.querySelector('desc').textContent) bad.push(id + ' has no words');
    const seen = [];
    for (const t of svg.querySelectorAll('text')) {
      const b = t.getBBox(), r = t.getBoundingClientRect();
      if (!b.width || !b.height) bad.push(id + ': empty text');
      if (r.left < box.left - .5 || r.right > box.right + .5 || r.top < box.top - .5 || r.bottom > box.bottom + .5)
        bad.push(id + ': "' + t.textContent + '" is outside');
      for (const [o, text] of seen)
        if (Math.min(o.right, r.right) - Math.max(o.left, r.left) > 1 && Math.min(o.bottom, r.bottom) - Math.max(o.top, r.top) > 4)
          bad.push(id + ': "' + t.textContent + '" lies on "' + text + '"');
      seen.push([r, t.textContent]);
    }
    if (seen.length < 4) bad.push(id + ' has only ' + seen.length + ' texts');
  }
  if (!n) bad.push('no figure is shown');
  return bad;
})()`

// widthScript says how wide the page is, in pixels. (window.innerWidth would not do: a phone's grows with the page.)
const widthScript = `Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)`

// shipped are the claims that come with Tare.
func shipped(t *testing.T) []claims.Claim {
	t.Helper()
	all, err := claims.Shipped("")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func samplePage(t *testing.T, s *data.Summary) string {
	t.Helper()
	dir := t.TempDir()
	files, err := WriteSummary(s, dir, Options{Claims: shipped(t)})
	if err != nil {
		t.Fatal(err)
	}
	return files[0]
}

// pages are reports of all kinds of studies, by name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	// One application of the paper's host: all of them take a browser minutes.
	fewer := paperHost()
	fewer.apps, fewer.figures = applications[3:], pinningFigures[3:4]
	files := map[string]string{"why": accountsPage(t, explainedSample())[0]}
	files["comparison"], _ = compared(t)
	few, many := figure7Hosts()
	files["hosts"] = samplePage(t, readFolders(t, few, many))
	files["fleet"] = fleetReport(t, 40)
	for name, s := range map[string]*data.Summary{
		"one": sample("large"), "three": sample("large", "xlarge", "2xlarge"), "cluster": cluster(), "trouble": troubled(), "hostile": hostile(),
		"small": readPinning(t, small()), "networks": readPinning(t, networks()), "sizes": readPinning(t, fewer, chr(16), chr(112, 56, 0)), "ladder": readLadder(t, false),
	} {
		files[name] = samplePage(t, s)
	}
	return files
}

// The page as its readers see it, in light and dark, at the smallest and a usual width.
func TestInBrowser(t *testing.T) {
	tb := start(t)
	for name, file := range pages(t) {
		t.Run(name, func(t *testing.T) {
			tb.open(t, file, 1100, "light")
			// Colours know nothing of widths.
			for width, scheme := range map[int64]string{360: "light", 1100: "dark"} {
				tb.show(t, width, scheme)
				where := fmt.Sprintf("%d pixels wide, %s", width, scheme)
				for _, bad := range ask[[]string](t, tb, contrastScript) {
					t.Errorf("%s: too little contrast: %s", where, bad)
				}
				dark := ask[string](t, tb, `getComputedStyle(document.body).backgroundColor`) != "rgb(255, 255, 255)"
				if dark != (scheme == "dark") {
					t.Errorf("%s: dark background: %t", where, dark)
				}
				tb.shoot(t, fmt.Sprintf("%s-%d-%s", name, width, scheme))
				tb.fits(t, width)
			}
			if name == "one" || name == "ladder" || name == "why" { // printing takes longest, and knows nothing of what is printed
				tb.prints(t, name)
			}
			for what, script := range map[string]string{
				"ids that are not unique": `(() => { const n = {}; document.querySelectorAll('[id]').forEach(e => n[e.id] = (n[e.id] || 0) + 1); return Object.keys(n).filter(k => n[k] > 1); })()`,
				"links to nowhere":        `[...document.querySelectorAll('a[href^="#"]')].map(a => a.getAttribute('href')).filter(h => !document.getElementById(h.slice(1)))`,
				"elements that could act": `[...document.querySelectorAll('*')].filter(e => /^(script|img|iframe|object|embed|link|form|foreignObject|use|image|animate|set)$/i.test(e.localName) || [...e.attributes].some(a => /^on/i.test(a.name) || /^\s*javascript:/i.test(a.value))).map(e => e.outerHTML.slice(0, 200))`,
			} {
				if found := ask[[]string](t, tb, script); len(found) > 0 {
					t.Errorf("%s: %v", what, found)
				}
			}
			tb.mu.Lock()
			defer tb.mu.Unlock()
			if len(tb.requests) != 1 || !strings.HasPrefix(tb.requests[0], "file://") {
				t.Errorf("the page asked for %v, want only its own address", tb.requests)
			}
			if len(tb.complaints) > 0 {
				t.Errorf("the browser says: %v", tb.complaints)
			}
		})
	}
}

// prints says when what is shown does not become a PDF.
func (tb *tab) prints(t *testing.T, name string) {
	t.Helper()
	pdf, err := chromedp.Run(tb.ctx, chromedp.PrintToPDF(chromedp.PDFPreferCSSPageSize()))
	if err != nil || !strings.HasPrefix(string(pdf), "%PDF-") || len(pdf) < 20_000 {
		t.Errorf("printing: %d bytes, %v", len(pdf), err)
	}
	if dir := os.Getenv("TARE_SHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".pdf"), pdf, 0o644); err != nil {
			t.Error(err)
		}
	}
}

// fits says what of a page does not fit its width, and what in its figures lies outside or on something else.
func (tb *tab) fits(t *testing.T, width int64) {
	t.Helper()
	tb.show(t, width, "light")
	if got := ask[int64](t, tb, widthScript); got > width {
		t.Errorf("%d pixels wide: the page is %d", width, got)
	}
	for _, bad := range ask[[]string](t, tb, figureScript) {
		t.Errorf("%d pixels wide: figure %s", width, bad)
	}
}

// A reader whose only font is another one, here as wide as any, sees the same figures: nothing overlaps, nothing is outside.
func TestWithoutItsFonts(t *testing.T) {
	tb := start(t, onlyFont(t, gomono.TTF))
	for name, file := range pages(t) {
		t.Run(name, func(t *testing.T) {
			tb.open(t, file, 1100, "light")
			// The browser really has no other: all letters are equally wide.
			if widths := ask[[]float64](t, tb, `['iiii', 'WWWW'].map(s => { const e = document.createElement('span'); e.textContent = s; e.style.fontFamily = 'Liberation Sans, Arial, sans-serif'; document.body.append(e); const w = e.getBoundingClientRect().width; e.remove(); return w; })`); widths[0] != widths[1] || widths[0] == 0 {
				t.Fatalf("another font is there: iiii and WWWW are %v pixels wide", widths)
			}
			for _, width := range []int64{360, 1100} {
				tb.fits(t, width)
				tb.shoot(t, fmt.Sprintf("%s-%d-mono", name, width))
			}
		})
	}
}

// In a window of any width a figure stays within the text's column, and where there is room no column of the results is cut off.
func TestWidths(t *testing.T) {
	tb := start(t)
	tb.open(t, samplePage(t, sample("large", "xlarge", "2xlarge")), 1200, "light")
	const beyond = `[...document.querySelectorAll('figure svg')].filter(s => {
		const f = s.closest('figure').getBoundingClientRect(), b = s.getBoundingClientRect();
		return b.width && (b.left < f.left - .5 || b.right > f.right + .5);
	}).map(s => s.getAttribute('aria-labelledby'))`
	const cut = `[...document.querySelectorAll('.broad')].filter(d => d.scrollWidth > d.clientWidth + 1).map(d => d.getAttribute('aria-labelledby') + ': ' + d.scrollWidth + ' in ' + d.clientWidth)`
	for _, width := range []int64{500, 700, 900, 1200} {
		tb.fits(t, width)
		for _, id := range ask[[]string](t, tb, beyond) {
			t.Errorf("%d pixels wide: the figure %s is wider than its column", width, id)
		}
		if width == 1200 { // where there is less room, with the reader's fonts, it scrolls
			for _, table := range ask[[]string](t, tb, cut) {
				t.Errorf("%d pixels wide: the table %s is cut", width, table)
			}
		}
		tb.shoot(t, fmt.Sprintf("widths-%d", width))
	}
}

// Should a hole be found in the escaping, the page's policy stops what comes through it.
func TestPolicyStopsWhatGetsIn(t *testing.T) {
	page := samplePage(t, sample("large"))
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	hole := `<script>document.title = "taken"</script><img src="http://127.0.0.1:9/x" onerror="document.title='taken'"></body>`
	if err := os.WriteFile(page, []byte(strings.Replace(string(data), "</body>", hole, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	tb := start(t)
	tb.open(t, page, 800, "light")
	if title := ask[string](t, tb, `document.title`); title == "taken" {
		t.Error("a script ran")
	}
	tb.mu.Lock()
	defer tb.mu.Unlock()
	if len(tb.complaints) == 0 {
		t.Error("the browser stopped nothing: the policy is not in force")
	}
}
