"""Units of measure in English: how they are written, and their names for one and for many."""

from __future__ import annotations

_REGULAR = {
    "km": "kilometer", "cm": "centimeter", "mm": "millimeter", "nm": "nanometer",
    "µm": "micrometer", "μm": "micrometer", "m": "meter", "mi": "mile", "yd": "yard",
    "kg": "kilogram", "g": "gram", "mg": "milligram", "µg": "microgram", "μg": "microgram",
    "lb": "pound", "lbs": "pound", "oz": "ounce",
    "kB": "kilobyte", "KB": "kilobyte", "MB": "megabyte", "GB": "gigabyte", "TB": "terabyte",
    "PB": "petabyte", "KiB": "kibibyte", "MiB": "mebibyte", "GiB": "gibibyte", "TiB": "tebibyte",
    "kb": "kilobit", "Mb": "megabit", "Gb": "gigabit",
    "ms": "millisecond", "µs": "microsecond", "μs": "microsecond", "ns": "nanosecond",
    "s": "second", "sec": "second", "secs": "second", "min": "minute", "mins": "minute",
    "h": "hour", "hr": "hour", "hrs": "hour",
    "W": "watt", "kW": "kilowatt", "MW": "megawatt", "GW": "gigawatt",
    "Wh": "watt hour", "kWh": "kilowatt hour", "MWh": "megawatt hour",
    "V": "volt", "kV": "kilovolt", "mV": "millivolt", "mA": "milliamp", "mAh": "milliamp hour",
    "Ω": "ohm", "kΩ": "kiloohm", "L": "liter", "l": "liter", "mL": "milliliter", "ml": "milliliter",
    "cl": "centiliter", "dB": "decibel", "px": "pixel", "cal": "calorie", "kcal": "kilocalorie",
    "J": "joule", "kJ": "kilojoule", "MJ": "megajoule", "Pa": "pascal", "kPa": "kilopascal",
    "hPa": "hectopascal", "mbar": "millibar", "ha": "hectare", "rad": "radian",
    "tsp": "teaspoon", "tbsp": "tablespoon",
    "m²": "square meter", "km²": "square kilometer", "cm²": "square centimeter",
    "m2": "square meter", "km2": "square kilometer", "m³": "cubic meter", "cm³": "cubic centimeter",
    "m3": "cubic meter", "sq mi": "square mile",
}  # fmt: skip
_IRREGULAR = {
    "%": ("percent", "percent"),
    "percent": ("percent", "percent"),
    "‰": ("per mille", "per mille"),
    "ft": ("foot", "feet"),
    "sq ft": ("square foot", "square feet"),
    "°C": ("degree Celsius", "degrees Celsius"),
    "° C": ("degree Celsius", "degrees Celsius"),
    "℃": ("degree Celsius", "degrees Celsius"),
    "°F": ("degree Fahrenheit", "degrees Fahrenheit"),
    "° F": ("degree Fahrenheit", "degrees Fahrenheit"),
    "℉": ("degree Fahrenheit", "degrees Fahrenheit"),
    "Hz": ("hertz", "hertz"),
    "kHz": ("kilohertz", "kilohertz"),
    "MHz": ("megahertz", "megahertz"),
    "GHz": ("gigahertz", "gigahertz"),
    "km/h": ("kilometer per hour", "kilometers per hour"),
    "kph": ("kilometer per hour", "kilometers per hour"),
    "mph": ("mile per hour", "miles per hour"),
    "m/s": ("meter per second", "meters per second"),
    "m/s²": ("meter per second squared", "meters per second squared"),
    "fps": ("frame per second", "frames per second"),
    "rpm": ("revolution per minute", "revolutions per minute"),
    "bps": ("bit per second", "bits per second"),
    "kbps": ("kilobit per second", "kilobits per second"),
    "Kbps": ("kilobit per second", "kilobits per second"),
    "Mbps": ("megabit per second", "megabits per second"),
    "Gbps": ("gigabit per second", "gigabits per second"),
    "MB/s": ("megabyte per second", "megabytes per second"),
    "GB/s": ("gigabyte per second", "gigabytes per second"),
    "psi": ("P S I", "P S I"),
    "bpm": ("beat per minute", "beats per minute"),
    "dpi": ("D P I", "D P I"),
}

UNITS: dict[str, tuple[str, str]] = {
    **{written: (name, f"{name}s") for written, name in _REGULAR.items()},
    **_IRREGULAR,
}

RATES: dict[str, str] = {
    "month": "month", "mo": "month", "year": "year", "yr": "year", "day": "day", "week": "week",
    "hour": "hour", "hr": "hour", "h": "hour", "minute": "minute", "min": "minute", "s": "second",
    "sec": "second", "second": "second", "person": "person", "user": "user", "kg": "kilogram",
    "lb": "pound", "km": "kilometer", "mile": "mile", "night": "night", "kWh": "kilowatt hour",
    "unit": "unit", "piece": "piece", "token": "token", "item": "item",
}  # fmt: skip
