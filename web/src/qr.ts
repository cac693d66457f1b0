// qr.ts: a text as a QR code, drawn as one SVG path.

import qrcode from "qrcode-generator";
import { svg } from "./dom";

const quiet = 4; // the white edge that readers need, in modules

export function qr(text: string, label: string): SVGSVGElement {
  const code = qrcode(0, "M");
  code.addData(text);
  code.make();
  const size = code.getModuleCount();
  let path = "";
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) if (code.isDark(y, x)) path += `M${x + quiet} ${y + quiet}h1v1h-1z`;
  }
  const whole = size + 2 * quiet;
  return svg(
    "svg",
    {
      class: "qr",
      viewBox: `0 0 ${whole} ${whole}`,
      role: "img",
      "aria-label": label,
      "shape-rendering": "crispEdges",
    },
    svg("rect", { width: whole, height: whole, fill: "#fff" }),
    svg("path", { d: path, fill: "#000" }),
  );
}
