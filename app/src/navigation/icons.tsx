/** The drawings of the navigation, in the strokes of the inbox's. */
const PATHS = {
  home: "M4 11l8-7 8 7M6 9.5V20h12V9.5M10 20v-6h4v6",
  mail: "M4 6h16v12H4zM4 7l8 6.5L20 7",
  rooms: "M12 12h.01M12 4.5h.01M18.5 8h.01M18.5 16h.01M12 19.5h.01M5.5 16h.01M5.5 8h.01",
  asks: "M5 4h14v12H10l-5 4zM10 8.2a2 2 0 113 1.7c-.7.4-1 .8-1 1.5M12 13.6v.1",
  servers: "M4 5h16v6H4zM4 13h16v6H4zM7.5 8h.01M7.5 16h.01M11 8h5M11 16h5",
  tapes: "M3.5 6h17v12h-17zM8.5 14a2 2 0 100-4 2 2 0 000 4zM15.5 14a2 2 0 100-4 2 2 0 000 4zM8.5 14h7",
  people: "M9 11a3.5 3.5 0 100-7 3.5 3.5 0 000 7zM2.5 20c.5-4 3-6 6.5-6s6 2 6.5 6M16 4.5a3.5 3.5 0 010 6M18 14.5c2 .7 3.2 2.5 3.5 5.5",
  audit: "M6 4h12v16H6zM9 8h6M9 12h6M9 16h3",
  settings: "M4 7h9M17 7h3M4 17h3M11 17h9M15 4.8v4.4M9 14.8v4.4",
  docs: "M5 4h9l5 5v11H5zM14 4v5h5M8.5 13h7M8.5 16.5h7",
  account: "M12 12a4 4 0 100-8 4 4 0 000 8zM4.5 20c.7-4 3.5-6 7.5-6s6.8 2 7.5 6",
  out: "M10 4H5v16h5M14 8l4 4-4 4M18 12H9",
  more: "M5 12h.01M12 12h.01M19 12h.01",
} as const;

export type IconName = keyof typeof PATHS;

/** Dots are short lines with round ends, so they are drawn wider. */
const DOTTED = new Set<IconName>(["rooms", "more"]);

export function Icon({ name }: { name: IconName }) {
  return (
    <svg viewBox="0 0 24 24" width="20" height="20" aria-hidden="true" focusable="false">
      <path
        d={PATHS[name]}
        fill="none"
        stroke="currentColor"
        stroke-width={DOTTED.has(name) ? 3.2 : 1.7}
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}
