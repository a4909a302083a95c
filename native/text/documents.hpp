// Python's strings for kernels of text; included by binding files alone.
#pragma once

#include <vector>

#include "core/binding.hpp"
#include "text/terms.hpp"

namespace epicycle {

// Python's strings as UTF-8, held while a kernel reads them.
struct Documents {
    std::vector<nb::object> held;
    std::vector<Term> terms;

    explicit Documents(const nb::list &list) {
        held.reserve(nb::len(list));
        terms.reserve(nb::len(list));
        for (nb::handle text : list) {
            if (!PyUnicode_Check(text.ptr())) throw nb::type_error("text: expected a list of str");
            PyObject *bytes = PyUnicode_AsUTF8String(text.ptr());
            if (!bytes) {  // halves of surrogate pairs
                PyErr_Clear();
                bytes = PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass");
            }
            if (!bytes) throw nb::python_error();
            held.push_back(nb::steal(bytes));
            char *data = nullptr;
            Py_ssize_t size = 0;
            if (PyBytes_AsStringAndSize(bytes, &data, &size) != 0) throw nb::python_error();
            terms.push_back({data, static_cast<std::size_t>(size)});
        }
    }
};

}  // namespace epicycle
