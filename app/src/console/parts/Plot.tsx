/** Small plots over time, drawn as SVG; the numbers behind each are in a table. */
import "../design/parts.css";

import { fullTime, timeWithin } from "../../text/time";

export interface Series {
  name: string;
  /** One for each time; null where there is nothing to show. */
  values: readonly (number | null)[];
  /** How it is drawn: what it is mainly about, what is bad, or what stands behind. */
  tone?: "main" | "bad" | "soft";
}

interface Props {
  title: string;
  /** Seconds since 1970, one for each value. */
  times: readonly number[];
  series: readonly Series[];
  /** Bars for what is counted, lines for what is measured. */
  kind?: "bars" | "line";
  /** A value with its unit. */
  format: (value: number) => string;
  /** What is said where there is no value. */
  empty?: string;
}

const WIDTH = 600;
const HEIGHT = 120;

/** The greatest value, or a little more so that it can be read: 1, 2 or 5 and zeros. */
export function ceiling(most: number): number {
  if (most <= 0) return 1;
  const step = 10 ** Math.floor(Math.log10(most));
  return step * [1, 2, 5, 10].find((it) => it * step >= most)!;
}

/** The lines of a series, each an unbroken run of values, as the points of an SVG path. */
export function paths(values: readonly (number | null)[], top: number, width = WIDTH, height = HEIGHT): string {
  const step = width / Math.max(1, values.length - 1);
  let drawn = "";
  let before = false;
  values.forEach((value, at) => {
    if (value !== null) {
      const [x, y] = [round(at * step), round(height - (value / top) * height)];
      // A value that stands alone is a dash.
      const alone = !before && (values[at + 1] ?? null) === null;
      drawn += before ? `L${x} ${y}` : alone ? dash(x, y, step, width) : `M${x} ${y}`;
    }
    before = value !== null;
  });
  return drawn;
}

function dash(x: number, y: number, step: number, width: number): string {
  const long = Math.min(step, width);
  return `M${round(Math.max(0, Math.min(x - long / 2, width - long)))} ${y}h${round(long)}`;
}

const round = (value: number) => Math.round(value * 10) / 10;

export function Plot({ title, times, series, kind = "line", format, empty = "Nothing yet." }: Props) {
  const values = series.flatMap((it) => it.values.filter((value) => value !== null));
  const most = Math.max(0, ...values);
  const top = ceiling(most);
  const nothing = values.length === 0 || (kind === "bars" && most === 0);
  const first = times[0] ?? 0;
  const last = times.at(-1) ?? first;
  const summary = series.map((it) => summaryOf(it, kind, format)).join("; ");
  return (
    <figure class="plot">
      <figcaption class="line">
        <span class="subtitle grow">{title}</span>
        {!nothing && series.length > 1 && (
          <span class="legend small">
            {series.map((it) => (
              <span key={it.name} class={`key ${it.tone ?? "main"}`}>
                {it.name}
              </span>
            ))}
          </span>
        )}
      </figcaption>
      {nothing ? (
        <p class="soft small">{empty}</p>
      ) : (
        <>
          <div class="field-of-view">
            <span class="top small soft" aria-hidden="true">
              {format(top)}
            </span>
            <svg
              viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
              preserveAspectRatio="none"
              role="img"
              aria-label={`${title}. ${summary}`}
            >
              <path class="grid" d={`M0 ${HEIGHT}H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 0H${WIDTH}`} />
              {series.map((it) =>
                kind === "bars" ? (
                  <path key={it.name} class={`bar ${it.tone ?? "main"}`} d={bars(it.values, top)} />
                ) : (
                  <path key={it.name} class={`curve ${it.tone ?? "main"}`} d={paths(it.values, top)} />
                ),
              )}
            </svg>
          </div>
          <p class="line small soft" aria-hidden="true">
            <span class="grow">{timeWithin(first, last - first)}</span>
            <span>{timeWithin(last, last - first)}</span>
          </p>
          <Numbers title={title} times={times} series={series} format={format} />
        </>
      )}
    </figure>
  );
}

function summaryOf({ name, values }: Series, kind: "bars" | "line", format: (value: number) => string): string {
  const there = values.filter((value) => value !== null);
  if (!there.length) return `${name}: none`;
  const sum = there.reduce((one, other) => one + other, 0);
  const told = kind === "bars" ? format(sum) : `about ${format(sum / there.length)}`;
  return `${name}: ${told}, at most ${format(Math.max(...there))}`;
}

function bars(values: readonly (number | null)[], top: number): string {
  const step = WIDTH / Math.max(1, values.length);
  return values
    .map((value, at) => {
      if (!value) return "";
      const high = Math.max(2, (value / top) * HEIGHT);
      return `M${round(at * step + step * 0.1)} ${HEIGHT}v${-round(high)}h${round(step * 0.8)}v${round(high)}z`;
    })
    .join("");
}

/** The same in numbers; times at which there was nothing are left out. */
function Numbers({ title, times, series, format }: Pick<Props, "title" | "times" | "series" | "format">) {
  const span = (times.at(-1) ?? 0) - (times[0] ?? 0);
  const rows = times
    .map((at, place) => ({ at, values: series.map((it) => it.values[place] ?? null) }))
    .filter(({ values }) => values.some((value) => value));
  return (
    <details class="numbers small">
      <summary>Show as a table</summary>
      <div class="table-frame">
        <table aria-label={title}>
          <thead>
            <tr>
              <th scope="col">Time</th>
              {series.map((it) => (
                <th key={it.name} scope="col" class="number">
                  {it.name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ at, values }) => (
              <tr key={at}>
                <th scope="row" title={fullTime(at)}>
                  {timeWithin(at, span)}
                </th>
                {values.map((value, place) => (
                  <td key={place} class="number">
                    {value === null ? "–" : format(value)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

/** A plot of the size of a word; what it shows is said in words. */
export function Sparkline({ values, label }: { values: readonly (number | null)[]; label: string }) {
  const there = values.filter((value) => value !== null);
  if (!there.length) return <span class="soft">–</span>;
  return (
    <svg class="spark" viewBox="-2 -2 104 28" preserveAspectRatio="none" role="img" aria-label={label}>
      <path class="curve main" d={paths(values, Math.max(...there) || 1, 100, 24)} />
    </svg>
  );
}
